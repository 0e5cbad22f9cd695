/**
 * Pairs with a gateway in the same network by six digits that it shows and the user types here. What its address says of
 * itself is believed by nobody until the code has proved it: CPace binds the gateway's key, and the handshake ours.
 *
 *     GET challenge ── open ─► Yb ── the user types ── Ya, message 1 ─► message 2 ── sealed: who we are ─► grant
 *
 * Nothing is stored before the end. Whatever ends it sooner is told the gateway, so that its owner is not asked for nothing.
 */
import { findBase64url } from '../../channel/base64url.ts';
import { derivePairingPsk, startPairingCode } from '../../channel/cpace.ts';
import type { DhKeyPair } from '../../channel/crypto.ts';
import type { Envelope } from '../../channel/envelope.ts';
import { decodeEnvelope, encodeEnvelope } from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import { formatGatewayId, gatewayIdOf } from '../../channel/gateway-id.ts';
import { HINT } from '../../channel/hint.ts';
import type { InitiatorSession, StartedSession } from '../../channel/initiator.ts';
import { startSession } from '../../channel/initiator.ts';
import { findJsonObject } from '../../channel/json.ts';
import type { PublicKey } from '../../channel/keys.ts';
import { asPublicKey, ID_BYTES, KEY_BYTES } from '../../channel/keys.ts';
import { isLabel } from '../../identity/access-claims.ts';
import type { DeviceDescription } from '../../identity/pairing.ts';
import { encodeDeviceDescription } from '../../identity/pairing.ts';
import { confirmPairing, deviceOf, assertValid } from './confirmation.ts';
import type { PairedDevice } from './device.ts';
import type { PosternErrorCode } from './errors.ts';
import { PathError, PosternError } from './errors.ts';
import { exchangeWhole, joinBytes } from './exchange.ts';
import { challengeTransport, codeTransport, httpUrls } from './http-transport.ts';
import { Paths } from './paths.ts';
import { findPlainRefusal } from './plain-refusal.ts';
import type { Platform } from './platform.ts';
import { abortable, platformOf } from './platform.ts';
import type { SecretStorage } from './secret-storage.ts';
import { saveDevice } from './secret-storage.ts';
import { Sessions } from './sessions.ts';
import type { Transport } from './transport.ts';

/** What an address says of itself. None of it is proved. */
export interface NearbyGateway {
  readonly url: string;
  readonly name: string;
  /** To be compared with what the gateway shows: eight groups of four hexadecimal digits. */
  readonly gatewayId: string;
}

export interface PairByCodeOptions extends Partial<Platform> {
  /** What the gateway's owner sees. */
  readonly device: DeviceDescription;
  readonly storage: SecretStorage;
  /**
   * Asks the user for the six digits that the gateway shows now; blanks in them are skipped. What it throws ends it.
   * @param tryNumber 1, 2 or 3; from 2 on the last code was wrong
   */
  readonly askCode: (tryNumber: number, gateway: NearbyGateway) => Promise<string>;
  readonly signal?: AbortSignal;
}

interface Challenge extends NearbyGateway {
  readonly id: Uint8Array;
  readonly gatewayKey: PublicKey;
}

const TRIES = 3;
/** The gateway is in the same network. */
const TIMEOUT_MS = 4000;
const SILENT_FOR_MS = 10_000;
/** For the word that nobody types the code any more. */
const CANCEL_MS = 1000;
const MAX_ANSWER_BYTES = 8192;
/** The same bytes are the same proof. */
const SENDINGS = 3;
const ATTEMPTS = 4;

/** Asks an address who is there. @throws PosternError, or the signal's reason */
export async function describeGateway(
  url: string,
  options: Partial<Platform> & { readonly signal?: AbortSignal } = {},
): Promise<NearbyGateway> {
  const { name, gatewayId, url: asked } = await fetchChallenge(url, wayTo(url, options));
  return { url: asked, name, gatewayId };
}

/**
 * @param url the gateway's address
 * @returns the device, which is stored by then
 * @throws PosternError; RangeError for a code that is not six digits, or a description that no gateway would accept; the
 * signal's reason; what `askCode` throws
 */
export async function pairByCode(url: string, options: PairByCodeOptions): Promise<PairedDevice> {
  assertValid(options.device);
  const way = wayTo(url, options);
  const challenge = await fetchChallenge(url, way);
  try {
    return await pairWith(challenge, way, options);
  } catch (error) {
    await cancel(challenge, way);
    throw error;
  }
}

async function pairWith(challenge: Challenge, way: Way, options: PairByCodeOptions): Promise<PairedDevice> {
  const { platform, transport, signal } = way;
  const secretKey = platform.crypto.randomBytes(KEY_BYTES);
  const session = await makeSession(way, challenge, platform.crypto.x25519(secretKey), options);
  const sessions = new Sessions({
    platform,
    paths: new Paths([transport]),
    handshake: onlyOnce(session),
    callOperation: 'call',
    silentForMs: SILENT_FOR_MS,
  });
  try {
    const { device } = options;
    const grant = await confirmPairing(sessions, { device, attempts: ATTEMPTS, signal, isOneSession: true });
    const { gatewayKey, gatewayId } = challenge;
    const paired = deviceOf({ gatewayKey, gatewayId, urls: [challenge.url], secretKey }, grant);
    await saveDevice(options.storage, paired);
    return paired;
  } catch (error) {
    if (error instanceof PosternError && error.code === 'approval_expired') throw new PosternError('code_expired');
    throw error;
  } finally {
    sessions.close();
  }
}

/** Without it the gateway goes on asking until the challenge's time is over. */
async function cancel({ id: challenge }: Challenge, { platform, transport }: Way): Promise<void> {
  const body = joinBytes([encodeEnvelope({ kind: 'discoveryCancel', challenge })]);
  const { signal } = new AbortController();
  const limits = { beginsWithinMs: CANCEL_MS, silentForMs: CANCEL_MS, setTimer: platform.setTimer, signal };
  await exchangeWhole({ transport, operation: 'call', body, ...limits }, MAX_ANSWER_BYTES).catch(() => undefined);
}

/** How to get there, and how long to wait. */
interface Way {
  readonly platform: Platform;
  readonly transport: Transport;
  readonly signal: AbortSignal;
}

function wayTo(url: string, options: Partial<Platform> & { readonly signal?: AbortSignal }): Way {
  const platform = platformOf(options);
  const { signal = new AbortController().signal } = options;
  return { platform, transport: codeTransport(knownUrl(url), platform.fetch), signal };
}

function knownUrl(url: string): string {
  const [known] = httpUrls([url]);
  if (known === undefined) throw new PosternError('code_not_offered');
  return known;
}

/** A code makes one session. */
function onlyOnce(session: InitiatorSession): () => Promise<InitiatorSession> {
  let unused: InitiatorSession | undefined = session;
  return async () => {
    const first = unused;
    unused = undefined;
    if (first === undefined) throw new PosternError('code_expired');
    return first;
  };
}

async function fetchChallenge(url: string, way: Way): Promise<Challenge> {
  const transport = challengeTransport(knownUrl(url), way.platform.fetch);
  const answer = await send({ ...way, transport }, joinBytes([]));
  const { v, nonce, gatewayKey, name } = findJsonObject(answer) ?? {};
  const id = typeof nonce === 'string' ? findBase64url(nonce) : undefined;
  const key = typeof gatewayKey === 'string' ? findBase64url(gatewayKey) : undefined;
  if (v !== 1 || id?.length !== ID_BYTES || key?.length !== KEY_BYTES || !isName(name)) {
    throw new PosternError(findPlainRefusal(answer) ?? 'code_not_offered');
  }
  const publicKey = asPublicKey(key);
  const gatewayId = formatGatewayId(gatewayIdOf(way.platform.crypto, publicKey));
  return { url: knownUrl(url), name, gatewayId, id, gatewayKey: publicKey };
}

/** It is for people to read. */
function isName(name: unknown): name is string {
  return typeof name === 'string' && isLabel(name);
}

/** Lets the user type until the session is made. */
async function makeSession(
  way: Way,
  challenge: Challenge,
  staticKey: DhKeyPair,
  { device, askCode }: PairByCodeOptions,
): Promise<InitiatorSession> {
  const about = encodeDeviceDescription(device);
  let answer = await ask(way, { kind: 'discoveryOpen', challenge: challenge.id, about }, 1);
  for (let attempt = 0; attempt < TRIES && answer.kind === 'discoveryOpened'; attempt++) {
    const { name, gatewayId, url } = challenge;
    const typed = await abortable(askCode(attempt + 1, { url, name, gatewayId }), way.signal);
    const code = typed.replaceAll(/\s/gu, '');
    const { envelope, started } = prove(way, challenge, staticKey, { code, attempt, share: answer.share });
    answer = await ask(way, envelope, SENDINGS);
    if (answer.kind === 'discoveryProved') return finish(started, answer.noise, way);
  }
  throw new PosternError(answer.kind === 'discoveryOpened' ? 'code_wrong' : 'incompatible');
}

interface Try {
  readonly code: string;
  readonly attempt: number;
  /** Yb */
  readonly share: Uint8Array;
}

function prove(
  { platform: { crypto, clientVersion } }: Way,
  { id: challenge, gatewayKey }: Challenge,
  staticKey: DhKeyPair,
  { code, attempt, share }: Try,
): { readonly envelope: Envelope; readonly started: StartedSession } {
  const side = startPairingCode(crypto, 'initiator', { code, challenge, attempt, gatewayKey });
  const started = unlessForged(() =>
    startSession({
      crypto,
      purpose: { kind: 'discovery', challenge },
      staticKey,
      remoteStaticKey: gatewayKey,
      psk: derivePairingPsk(crypto, side.finish(share)),
      hints: { clientVersion },
    }),
  );
  return { envelope: { kind: 'discoveryProve', challenge, share: side.share, noise: started.message1 }, started };
}

/** No gateway sends a share that is none, or a message that does not open; none has a key that can't be agreed with. */
function unlessForged<Value>(step: () => Value): Value {
  try {
    return step();
  } catch (error) {
    throw error instanceof ChannelError ? new PosternError('gateway_unproved') : error;
  }
}

function finish(started: StartedSession, message2: Uint8Array, { platform }: Way): InitiatorSession {
  return unlessForged(() => started.finish(message2, platform.now()));
}

/** @throws PosternError for a hint, and for what is no answer */
async function ask(way: Way, envelope: Envelope, sendings: number): Promise<Envelope> {
  const body = joinBytes([encodeEnvelope(envelope)]);
  const answer = decode(await send(way, body, sendings));
  if (answer.kind === 'hint') throw new PosternError(FAILURES.get(answer.code) ?? 'incompatible');
  return answer;
}

const FAILURES: ReadonlyMap<number, PosternErrorCode> = new Map([
  [HINT.rateLimited, 'busy'],
  [HINT.shuttingDown, 'offline'],
  [HINT.challengeOver, 'code_expired'],
  [HINT.pairingDenied, 'code_denied'],
  [HINT.codeRefused, 'code_wrong'],
  [HINT.tooManyPairings, 'code_busy'],
  [HINT.notOffered, 'code_not_offered'],
]);

function decode(bytes: Uint8Array): Envelope {
  try {
    return decodeEnvelope(bytes);
  } catch (error) {
    if (!(error instanceof ChannelError)) throw error;
    throw new PosternError(findPlainRefusal(bytes) ?? 'incompatible');
  }
}

/** @throws PosternError `offline` if no answer came, or the signal's reason */
async function send(
  { platform: { setTimer }, transport, signal }: Way,
  body: Uint8Array<ArrayBuffer>,
  sendings = 1,
): Promise<Uint8Array> {
  const limits = { beginsWithinMs: TIMEOUT_MS, silentForMs: TIMEOUT_MS, setTimer, signal };
  for (let sending = 1; ; sending++) {
    try {
      return await exchangeWhole({ transport, operation: 'call', body, ...limits }, MAX_ANSWER_BYTES);
    } catch (error) {
      if (!(error instanceof PathError)) throw error;
      if (sending >= sendings) throw new PosternError('offline', { cause: error });
    }
  }
}
