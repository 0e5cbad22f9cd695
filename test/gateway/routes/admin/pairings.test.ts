/** `/admin/invites` and `/admin/devices` as the plain functions they are, on a real database. */
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asRoutingId, type RoutingId } from '../../../../channel/keys.ts';
import type { RelayState } from '../../../../gateway/relays.ts';
import type { GatewayRequest, Reply, Route, Services } from '../../../../gateway/route.ts';
import { listDevices, renameDevice, revokeDevice } from '../../../../gateway/routes/admin/devices.ts';
import { closeInvite, createInvite, getInvite, listInvites } from '../../../../gateway/routes/admin/invites.ts';
import type { MadeInvite } from '../../../../gateway/wire/admin/pairings.ts';
import { gatewayPublicKey } from '../../../../identity/gateway-name.ts';
import { findInviteCode } from '../../../../identity/invite-code.ts';
import { asGatewayKey } from '../../../../identity/secret-keys.ts';
import { temporaryHome } from '../../../identity/node/home.ts';
import {
  description,
  deviceKeyOf,
  gateway,
  inviteKeysOf,
  openPairings,
  type PairingsOfHome,
} from '../../../identity/node/pairings-of-home.ts';

const gatewayKey = asGatewayKey(randomBytes(32));
let remove: () => void;
let pairings: PairingsOfHome;

beforeEach(() => {
  const { home, remove: removeHome } = temporaryHome();
  remove = removeHome;
  pairings = openPairings(home);
});
afterEach(() => {
  pairings.database.close();
  remove();
});

/** What these routes need, and nothing more. */
type Needs = Pick<Services, 'keys' | 'storage' | 'gatewayFacts' | 'appOrigin' | 'relays'>;

interface InviteRequest {
  readonly body?: object;
  readonly id?: string;
  readonly appOrigin?: string;
  readonly relays?: readonly RelayState[];
}

async function ask(
  route: Route<Needs>,
  { body = {}, id = '', appOrigin, relays = [] }: InviteRequest = {},
): Promise<Reply> {
  const services = {
    keys: { openPairings: async () => ({ ...pairings, gatewayKey: () => gatewayKey }) },
    gatewayFacts: () => gateway,
    appOrigin,
    relays: { list: () => relays },
  } as unknown as Needs;
  return route.handle!({ json: () => body, params: { id } } as unknown as GatewayRequest, services);
}

const make = async (asking: InviteRequest = {}) => (await ask(createInvite, asking)).body as MadeInvite;
const pair = (inviteId: string) =>
  pairings.devices.redeem({ inviteId, deviceKey: deviceKeyOf(1), description, gateway });

describe('an invite', () => {
  test('has in its code what a device needs, and shows it once', async () => {
    const { status, headers, body } = await ask(createInvite, {
      body: { agent_index: 2, expires_in_seconds: 90, needs_approval: true, bearer: true },
      appOrigin: 'https://app.example',
    });
    expect([status, headers]).toEqual([201, { 'cache-control': 'no-store' }]);
    const made = body as MadeInvite;
    expect(made).toMatchObject({ state: 'open', agent_index: 2, needs_approval: true, bearer: true });
    expect(made).toMatchObject({ gateway_id: gateway.gatewayId, gateway_name: 'home', urls: gateway.urls });
    expect(Date.parse(made.expires_at) - Date.parse(made.created_at)).toBe(90_000);
    const code = findInviteCode(made.code)!;
    expect(code).toMatchObject({ needsApproval: true, isForOneAgent: true, urls: gateway.urls });
    expect(code.gatewayKey).toEqual(gatewayPublicKey(gatewayKey));
    // Of this invite; never over before the gateway says so, and never a minute later.
    expect(Buffer.from(inviteKeysOf(code.secret).inviteId).toString('hex')).toBe(made.id);
    const late = code.expiresAtMinute * 60_000 - Date.parse(made.expires_at);
    expect(late >= 0 && late < 60_000).toBe(true);
    expect(made.link).toMatch(/^https:\/\/app\.example\/#i=/);
    expect(findInviteCode(made.link!)).toEqual(code);
    for (const shown of [await ask(listInvites), await ask(getInvite, { id: made.id })]) {
      expect(JSON.stringify(shown.body)).not.toMatch(/SVC|secret|code|psk/);
    }
  });

  test('names the relay that is connected, and can be used through any', async () => {
    const state = { sinceMs: 0, isContested: false, bytesIn: 0, bytesOut: 0 };
    const [one, other] = [1, 2].map((byte) => asRoutingId(new Uint8Array(15).fill(byte))) as [RoutingId, RoutingId];
    const away = { ...state, origin: 'wss://one.example', routingId: one, phase: 'waiting' } as const;
    const there = { ...state, origin: 'wss://other.example', routingId: other, phase: 'connected' } as const;
    const made = await make({ relays: [away, there] });
    expect(made.relay).toMatchObject({ origin: there.origin, state: 'connected' });
    const code = findInviteCode(made.code)!;
    expect(code.relay).toEqual({ origin: there.origin, routingId: other });
    const { relayTag } = inviteKeysOf(code.secret);
    for (const routingId of [one, other])
      expect(pairings.invites.relayTags(routingId).map(({ tag }) => tag)).toEqual([relayTag(routingId)]);
    const without = await make();
    expect([without.relay, findInviteCode(without.code)!.relay]).toEqual([null, undefined]);
    expect(findInviteCode((await make({ relays: [away] })).code)!.relay).toEqual({
      origin: away.origin,
      routingId: one,
    });
  });

  test('has no link where no app is served', async () => {
    expect(await make()).not.toHaveProperty('link');
  });

  test.each([{ expires_in_seconds: 59 }, { expires_in_seconds: 3601 }, { agent_index: -1 }, { label: 'x' }])(
    'is refused with %j, and none is made',
    async (body) => {
      await expect(make({ body })).rejects.toMatchObject({ code: 'bad_request' });
      expect(pairings.invites.list()).toEqual([]);
    },
  );

  test('is refused where eight are open', async () => {
    for (let n = 0; n < 8; n += 1) await make();
    await expect(make()).rejects.toMatchObject({ code: 'too_many_invites' });
  });

  test('tells what became of it', async () => {
    const [made, other] = [await make(), await make()];
    expect((await ask(getInvite, { id: made.id })).body).toMatchObject({ state: 'open', device: null });
    pair(made.id);
    expect((await ask(getInvite, { id: made.id })).body).toMatchObject({
      state: 'used',
      device: { name: 'phone', platform: 'android', model: 'Pixel', status: 'active', scope: 'master' },
    });
    const close = async (id: string) => (await ask(closeInvite, { id })).body;
    expect(await close(made.id)).toEqual({ id: made.id, state: 'used', closed: false });
    expect(await close(other.id)).toEqual({ id: other.id, state: 'closed', closed: true });
    expect(await close(other.id)).toEqual({ id: other.id, state: 'closed', closed: false });
    for (const route of [getInvite, closeInvite]) {
      await expect(ask(route, { id: '0'.repeat(32) })).rejects.toMatchObject({ code: 'not_found' });
    }
  });
});

test('devices are listed without their secrets, renamed and revoked', async () => {
  pair((await make()).id);
  const [device] = pairings.devices.list();
  const id = device!.id;
  pairings.devices.touch(pairings.devices.find(id)!, 'lan');
  const listed = JSON.stringify((await ask(listDevices)).body);
  expect(JSON.parse(listed)).toMatchObject({ devices: [{ id, key_id: device!.kid, last_path: 'lan' }] });
  expect(listed).not.toMatch(/psk|static|svc-v1/);
  expect((await ask(renameDevice, { id, body: { name: 'tablet' } })).body).toMatchObject({ id, name: 'tablet' });
  for (const name of ['', 'a\nb', ' a'])
    await expect(ask(renameDevice, { id, body: { name } })).rejects.toMatchObject({ code: 'bad_request' });
  expect((await ask(revokeDevice, { id })).body).toEqual({ id, revoked: true, already: false, cut: 0, durable: true });
  expect((await ask(revokeDevice, { id })).body).toEqual({ id, revoked: true, already: true, cut: 0, durable: true });
  expect((await ask(listDevices)).body).toMatchObject({ devices: [{ name: 'tablet', status: 'revoked' }] });
  for (const [route, body] of [[renameDevice, { name: 'x' }] as const, [revokeDevice, {}] as const])
    await expect(ask(route, { id: 'anonymous', body })).rejects.toMatchObject({ code: 'not_found' });
});
