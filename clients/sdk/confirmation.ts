/** The last step of every pairing, inside the session that it made: the device says who it is, and gets what it needs. */
import { formatBase64url } from '../../channel/base64url.ts';
import { encodeRequestHead, IDEMPOTENCY_KEY_BYTES } from '../../channel/head.ts';
import { HINT } from '../../channel/hint.ts';
import { findJsonObject } from '../../channel/json.ts';
import type { PublicKey } from '../../channel/keys.ts';
import type { DeviceDescription, PairingGrant } from '../../identity/pairing.ts';
import {
  CONFIRM_PATH,
  encodeDeviceDescription,
  findDeviceDescription,
  findPairingGrant,
} from '../../identity/pairing.ts';
import type { PairedDevice } from './device.ts';
import { shownRelays } from './device.ts';
import type { PosternErrorCode } from './errors.ts';
import { HintError, isUnreached, PathError, PosternError } from './errors.ts';
import { httpUrls } from './http-transport.ts';
import { pause } from './platform.ts';
import { sealCall, takeBody, takeHead } from './sealed-call.ts';
import type { Sessions } from './sessions.ts';

const PAUSES_MS = [0, 1000, 2000, 4000, 8000];
/** Not at once, where the gateway counts. All pauses together are longer than the ten seconds that it looks back. */
const SHORTEST_BUSY_MS = 1000;
const MAX_GRANT_BYTES = 65_536;

/** @throws RangeError for a description that no gateway would accept */
export function assertValid(device: DeviceDescription): void {
  if (findDeviceDescription(encodeDeviceDescription(device)) === undefined)
    throw new RangeError('name, platform and model of a device are one line of up to 64 characters each');
}

interface ConfirmationOptions {
  /** Who we say that we are. */
  readonly device: DeviceDescription;
  readonly attempts: number;
  readonly signal?: AbortSignal;
  /** All attempts are calls of one session: there can be no other. */
  readonly isOneSession?: boolean;
}

/** Says who we are until the answer is there. @throws PosternError, or the signal's reason */
export async function confirmPairing(
  sessions: Sessions,
  { device, attempts, signal = new AbortController().signal, isOneSession = false }: ConfirmationOptions,
): Promise<PairingGrant> {
  const body = encodeDeviceDescription(device);
  const headers = [['content-type', 'application/json']] as const;
  // The same for every attempt, as for each action that is tried again.
  const idempotencyKey = sessions.options.platform.crypto.randomBytes(IDEMPOTENCY_KEY_BYTES);
  const request = { method: 'POST', path: CONFIRM_PATH, headers, bodyBytes: body.length, idempotencyKey };
  const head = encodeRequestHead(request);
  let hasMet = false;
  for (let attempt = 1; ; attempt++) {
    try {
      const call = await sealCall(sessions, head, body, signal);
      hasMet = true;
      if (!isOneSession) sessions.leave(call.session);
      const answer = await takeHead(call.events);
      return readGrant(answer.status, await takeBody(call.events, MAX_GRANT_BYTES));
    } catch (error) {
      const isTooSoon = isBusy(error);
      if (!isTooSoon && !(hasMet && isPassing(error))) throw error;
      if (attempt === attempts) throw lastWordOf(error);
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
  return isUnreached(error) || error instanceof PathError || error instanceof HintError;
}

function lastWordOf(error: unknown): PosternError {
  if (error instanceof PosternError && isUnreached(error)) return error;
  const hint = error instanceof PathError ? error.hint : undefined;
  return new PosternError(isBusy(error) ? 'busy' : (hint ?? 'offline'), { cause: error });
}

/** What a gateway says, sealed, to a device that it does not take. */
const REFUSALS: ReadonlyMap<unknown, PosternErrorCode> = new Map([
  ['invite_used', 'invite_used'],
  ['invite_over', 'invite_over'],
  ['pairing_denied', 'pairing_denied'],
  ['approval_expired', 'approval_expired'],
  ['too_many_approvals', 'too_many_approvals'],
  ['rate_limited', 'busy'],
  ['storage_full', 'storage_full'],
]);

function readGrant(status: number, body: Uint8Array): PairingGrant {
  const grant = status === 200 ? findPairingGrant(body) : undefined;
  if (grant !== undefined) return grant;
  const { error } = findJsonObject(body) ?? {};
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  // What else is the gateway's trouble passes; what is ours does not.
  throw new PosternError(REFUSALS.get(code) ?? (status >= 500 ? 'gateway_unavailable' : 'incompatible'));
}

/** What a device knows of its gateway by itself. */
interface Known {
  /** GS. */
  readonly gatewayKey: PublicKey;
  readonly gatewayId: string;
  readonly urls: readonly string[];
  /** cs */
  readonly secretKey: Uint8Array;
}

/** What the invite or the code vouched for counts, not what came of it. */
export function deviceOf({ gatewayKey, gatewayId, urls, secretKey }: Known, grant: PairingGrant): PairedDevice {
  const { deviceId, gatewayName, bearerKey } = grant;
  return {
    version: 1,
    deviceId,
    deviceKey: formatBase64url(secretKey),
    gatewayKey: formatBase64url(gatewayKey),
    psk: formatBase64url(grant.psk),
    gatewayName,
    gatewayId,
    urls: httpUrls([...grant.urls, ...urls]),
    relays: shownRelays(grant.relays),
    ...(bearerKey === undefined ? {} : { bearerKey }),
  };
}
