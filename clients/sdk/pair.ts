/**
 * Redeems an invite. The device's key is stored before anything is sent, and every attempt uses that one: an invite that
 * was redeemed gives its answer again to the same key, so a lost answer, a crash or a second try strands nobody.
 */
import { formatBase64url } from '../../channel/base64url.ts';
import { encodeRequestHead } from '../../channel/head.ts';
import { HINT } from '../../channel/hint.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import { findJsonObject } from '../../channel/json.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import type { DeviceDescription, PairingGrant } from '../../identity/pairing.ts';
import {
  CONFIRM_PATH,
  encodeDeviceDescription,
  findDeviceDescription,
  findPairingGrant,
} from '../../identity/pairing.ts';
import type { PairedDevice } from './device.ts';
import type { PosternErrorCode } from './errors.ts';
import { HintError, PathError, PosternError } from './errors.ts';
import { httpUrls, pathsTo } from './http-transport.ts';
import type { InviteDescription } from './invite.ts';
import { describeInvite } from './invite.ts';
import type { Platform } from './platform.ts';
import { pause, platformOf } from './platform.ts';
import { sealCall, takeBody, takeHead } from './sealed-call.ts';
import type { SecretStorage } from './secret-storage.ts';
import { loadPendingKey, pendingEntry, saveDevice } from './secret-storage.ts';
import { Sessions } from './sessions.ts';
import type { Transport } from './transport.ts';

export interface PairOptions extends Partial<Platform> {
  /** What the gateway's owner sees. */
  readonly device: DeviceDescription;
  readonly storage: SecretStorage;
  readonly signal?: AbortSignal;
  /** Other ways to the gateway, tried after its addresses. */
  readonly transports?: readonly Transport[];
}

/** After that the same question is asked again, and joins the one that waits: no sign of life can come with it. */
const SILENT_FOR_MS = 60_000;
const PAUSES_MS = [0, 1000, 2000, 4000, 8000];
const ATTEMPTS = 6;
/** Not at once, where the gateway counts. All pauses together are longer than the ten seconds that it looks back. */
const SHORTEST_BUSY_MS = 1000;
/** An owner may take a quarter of an hour. */
const APPROVAL_ATTEMPTS = 15;
const MAX_GRANT_BYTES = 65_536;

/**
 * @param invite what was pasted or scanned, or a code that was read before
 * @returns the device, which is stored by then
 * @throws PosternError; RangeError for a description that no gateway would accept; the signal's reason
 */
export async function pair(invite: string | InviteCode, options: PairOptions): Promise<PairedDevice> {
  const platform = platformOf(options);
  const { crypto } = platform;
  const { storage } = options;
  if (findDeviceDescription(encodeDeviceDescription(options.device)) === undefined)
    throw new RangeError('name, platform and model of a device are one line of up to 64 characters each');
  const described = describeInvite(invite, platform);
  const { inviteId, psk } = deriveInviteKeys(crypto, described.code.secret);
  const entry = pendingEntry(inviteId);
  try {
    if (described.isOver) throw new PosternError('invite_over');
    const secretKey = await loadPendingKey(storage, entry, crypto);
    const sessions = new Sessions({
      platform,
      paths: pathsTo(described.urls, platform.fetch, options.transports),
      gateway: {
        operation: 'pair-invite',
        envelope: (noise) => ({ kind: 'inviteRequest', inviteId, noise }),
        purpose: { kind: 'invite', inviteId },
        staticKey: crypto.x25519(secretKey),
        remoteStaticKey: described.code.gatewayKey,
        psk,
      },
      callOperation: 'pair-invite',
      silentForMs: SILENT_FOR_MS,
    });
    const grant = await confirm(sessions, described, options);
    const device = deviceOf(described, secretKey, grant);
    await saveDevice(storage, device);
    await storage.erase(entry);
    return device;
  } catch (error) {
    if (isFinal(error)) await storage.erase(entry);
    throw error;
  }
}

/** Says who we are until the answer is there. */
async function confirm(
  sessions: Sessions,
  { needsApproval }: InviteDescription,
  { device, signal = new AbortController().signal }: PairOptions,
): Promise<PairingGrant> {
  const body = encodeDeviceDescription(device);
  const headers = [['content-type', 'application/json']] as const;
  const head = encodeRequestHead({ method: 'POST', path: CONFIRM_PATH, headers, bodyBytes: body.length });
  const attempts = needsApproval ? APPROVAL_ATTEMPTS : ATTEMPTS;
  let hasMet = false;
  for (let attempt = 1; ; attempt++) {
    try {
      const call = await sealCall(sessions, head, body, signal);
      hasMet = true;
      sessions.leave(call.session);
      const answer = await takeHead(call.events);
      return readGrant(answer.status, await takeBody(call.events, MAX_GRANT_BYTES));
    } catch (error) {
      const isTooSoon = isBusy(error);
      if (!isTooSoon && !(hasMet && isPassing(error))) throw error;
      if (attempt === attempts) throw new PosternError(isTooSoon ? 'busy' : 'offline', { cause: error });
      const pauseMs = PAUSES_MS.at(Math.min(attempt, PAUSES_MS.length) - 1) ?? 0;
      await pause(
        sessions.options.platform.setTimer,
        isTooSoon ? Math.max(pauseMs, SHORTEST_BUSY_MS) : pauseMs,
        signal,
      );
    }
  }
}

/** Who pairs a second time at once, or beside others behind one router, comes too often and is taken a little later. */
function isBusy(error: unknown): boolean {
  if (error instanceof HintError) return error.hint === HINT.rateLimited || error.hint === HINT.tooManyCalls;
  return error instanceof PosternError && error.code === 'busy';
}

function isPassing(error: unknown): boolean {
  if (error instanceof PosternError) return error.code === 'offline';
  return error instanceof PathError || error instanceof HintError;
}

/** What a gateway says, sealed, to a device that it does not take. */
const REFUSALS: ReadonlyMap<unknown, PosternErrorCode> = new Map([
  ['invite_used', 'invite_used'],
  ['invite_over', 'invite_over'],
  ['pairing_denied', 'pairing_denied'],
  ['approval_expired', 'approval_expired'],
  ['too_many_approvals', 'too_many_approvals'],
]);

function readGrant(status: number, body: Uint8Array): PairingGrant {
  const grant = status === 200 ? findPairingGrant(body) : undefined;
  if (grant !== undefined) return grant;
  const { error } = findJsonObject(body) ?? {};
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  throw new PosternError(REFUSALS.get(code) ?? 'incompatible');
}

/** Nothing will come of this key. What only a hint said may be a lie, and the key that was redeemed is worth a lot. */
function isFinal(error: unknown): boolean {
  const codes: readonly PosternErrorCode[] = ['invite_used', 'invite_over', 'pairing_denied', 'approval_expired'];
  return error instanceof PosternError && codes.includes(error.code);
}

/** What the invite vouched for counts, not what came of it. */
function deviceOf({ code, ...invite }: InviteDescription, secretKey: Uint8Array, grant: PairingGrant): PairedDevice {
  const { deviceId, gatewayName, bearerKey } = grant;
  return {
    version: 1,
    deviceId,
    deviceKey: formatBase64url(secretKey),
    gatewayKey: formatBase64url(code.gatewayKey),
    psk: formatBase64url(grant.psk),
    gatewayName,
    gatewayId: invite.gatewayId,
    urls: httpUrls([...grant.urls, ...invite.urls]),
    relays: grant.relays.map(({ origin, routingId }) => ({ origin, rid: formatBase64url(routingId) })),
    ...(bearerKey === undefined ? {} : { bearerKey }),
  };
}
