/** `/admin/invites`: makes what a device is paired with, for the owner at this machine. */
import { formatInviteCode, formatInviteLink, type InviteCode } from '../../../identity/invite-code.ts';
import { gatewayPublicKey } from '../../../identity/gateway-name.ts';
import { MAX_OPEN_INVITES, TooManyInvites, type InviteRegistry } from '../../../identity/node/invite-registry.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { encodeRelay } from '../../relays.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';
import { createInviteSchema, encodeDevice, encodeInvite, inviteParamsOf } from '../../wire/admin/pairings.ts';

type CreateNeeds = Pick<Services, 'keys' | 'gatewayFacts' | 'appOrigin' | 'relays'>;

export const createInvite = adminRoute({
  method: 'POST',
  path: '/admin/invites',
  summary:
    'Make an invite, which pairs one device: for one agent or for all, for 60 to 3600 seconds (600 unless said), with a question to the owner when a device comes, with a plain access key beside the device’s own. The answer is the only place where its code is ever shown.',
  body: createInviteSchema,
  async handle({ json }, { keys, gatewayFacts, appOrigin, relays }: CreateNeeds) {
    const params = inviteParamsOf(parseBody(createInviteSchema, json()));
    const pairings = await keys.openPairings();
    const gatewayKey = pairings.gatewayKey();
    const facts = gatewayFacts(gatewayKey);
    const known = relays.list();
    const { secret, invite } = make(pairings.invites, {
      ...params,
      routingIds: known.map(({ routingId }) => routingId),
    });
    // A code has room for one.
    const relay = known.find(({ phase }) => phase === 'connected') ?? known[0];
    const code: InviteCode = {
      gatewayKey: gatewayPublicKey(gatewayKey),
      secret,
      // Rounded up: it is this gateway that knows to the second.
      expiresAtMinute: Math.ceil(invite.expiresAtS / 60),
      needsApproval: invite.needsApproval,
      isForOneAgent: invite.agentIndex !== undefined,
      urls: facts.urls,
      ...(relay === undefined ? {} : { relay }),
    };
    return {
      status: 201,
      headers: { 'cache-control': 'no-store' },
      body: {
        code: formatInviteCode(code),
        ...(appOrigin === undefined ? {} : { link: formatInviteLink(appOrigin, code) }),
        gateway_id: facts.gatewayId,
        gateway_name: facts.gatewayName,
        urls: facts.urls,
        relay: relay === undefined ? null : encodeRelay(relay),
        ...encodeInvite(invite),
      },
    };
  },
});

function make(invites: InviteRegistry, params: Parameters<InviteRegistry['create']>[0]) {
  try {
    return invites.create(params);
  } catch (error) {
    if (!(error instanceof TooManyInvites)) throw error;
    throw new RequestError(
      'too_many_invites',
      `${MAX_OPEN_INVITES} invites are open. Close one ("postern invite list" shows them), or wait until one expires.`,
    );
  }
}

export const listInvites = adminRoute({
  method: 'GET',
  path: '/admin/invites',
  summary: 'The invites of the last day, newest first. Not what a device would need of them.',
  async handle(_request, { keys }: Pick<Services, 'keys'>) {
    const { invites } = await keys.openPairings();
    return { body: { invites: invites.list().map(encodeInvite) } };
  },
});

export const getInvite = adminRoute({
  method: 'GET',
  path: '/admin/invites/:id',
  isPolled: true,
  summary: 'What became of an invite, and the device that was paired with it.',
  async handle({ params }, { keys }: Pick<Services, 'keys'>) {
    const { invites, devices } = await keys.openPairings();
    const invite = invites.find(params['id'] ?? '');
    if (invite === undefined) throw unknownInvite();
    const device = invite.deviceId === undefined ? undefined : devices.find(invite.deviceId);
    return { body: { ...encodeInvite(invite), device: device === undefined ? null : encodeDevice(device) } };
  },
});

export const closeInvite = adminRoute({
  method: 'DELETE',
  path: '/admin/invites/:id',
  summary: 'Close an open invite: no device can use it any more. One that is used stays with its device.',
  async handle({ params }, { keys }: Pick<Services, 'keys'>) {
    const { invites } = await keys.openPairings();
    const id = params['id'] ?? '';
    const closed = invites.close(id);
    const invite = invites.find(id);
    if (invite === undefined) throw unknownInvite();
    return { body: { id, state: invite.state, closed } };
  },
});

function unknownInvite(): RequestError {
  return new RequestError('not_found', 'There is no invite with this id, or it ended more than a day ago.');
}
