/** A handshake with the gateway over the first path on which it is the gateway that answers. */
import type { Envelope } from '../../channel/envelope.ts';
import { decodeEnvelope, encodeEnvelope } from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import type { InitiatorOptions } from '../../channel/handshake.ts';
import { HINT } from '../../channel/hint.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { startSession } from '../../channel/initiator.ts';
import { PathError, PosternError } from './errors.ts';
import { exchangeWhole, joinBytes } from './exchange.ts';
import { findPlainRefusal } from './plain-refusal.ts';
import type { Platform } from './platform.ts';
import type { Attempt } from './stagger.ts';
import { stagger } from './stagger.ts';
import type { Operation, Transport } from './transport.ts';

/** How long an address may be silent. */
const ADDRESS_MS = 4000;
/** Whatever is farther away has to be connected to first, in several round trips, over any kind of network. */
const FAR_MS = 15_000;
/** Message 2 has 1408 bytes, longer by 256 for more terms. */
const MAX_ANSWER_BYTES = 8192;

/** The gateway and who asks it. A session and a pairing differ in nothing else. */
export interface HandshakeWith extends Omit<InitiatorOptions, 'crypto' | 'hints'> {
  readonly operation: Operation;
  readonly envelope: (noise: Uint8Array) => Envelope;
}

/** What is said when no path leads there: the most telling that any of them gave. */
const FAILURES = [
  'incompatible',
  'refused',
  'busy',
  'gateway_unavailable',
  'wrong_gateway',
  'relay_refused',
  'relay_busy',
  'gateway_away',
  'offline',
] as const;
type HandshakeFailure = (typeof FAILURES)[number];

export interface Shaken {
  readonly session: InitiatorSession;
  /** What it was made over. */
  readonly transport: Transport;
}

/** Tries the transports in their order, those that don't answer at once at the same time. @throws PosternError */
export async function handshake(
  platform: Platform,
  transports: readonly Transport[],
  gateway: HandshakeWith,
  signal: AbortSignal,
): Promise<Shaken> {
  const attempts = transports.map((transport): Attempt<Shaken, HandshakeFailure> => async (ending) => {
    const outcome = await handshakeTwice(platform, transport, gateway, ending);
    return typeof outcome === 'string' ? { failure: outcome } : { success: { session: outcome, transport } };
  });
  const outcome = await stagger(attempts, { setTimer: platform.setTimer, signal });
  if ('success' in outcome) return outcome.success;
  throw new PosternError(FAILURES.find((failure) => outcome.failures.includes(failure)) ?? 'offline');
}

/**
 * A path that breaks is tried once more, since its connection may only have been old; one that is silent is left, and so
 * is one that there is no connection to.
 */
async function handshakeTwice(
  ...[platform, transport, gateway, signal]: Parameters<typeof handshakeOver>
): Promise<InitiatorSession | HandshakeFailure> {
  const first = await handshakeOver(platform, transport, gateway, signal);
  const outcome = first === 'broken' ? await handshakeOver(platform, transport, gateway, signal) : first;
  return outcome === 'broken' ? 'offline' : outcome;
}

async function handshakeOver(
  platform: Platform,
  transport: Transport,
  { operation, envelope, ...noise }: HandshakeWith,
  signal: AbortSignal,
): Promise<InitiatorSession | HandshakeFailure | 'broken'> {
  const { crypto, setTimer, now, clientVersion } = platform;
  const started = startSession({ crypto, hints: { clientVersion }, ...noise });
  const body = joinBytes([encodeEnvelope(envelope(started.message1))]);
  const timeoutMs = transport.path?.kind === 'lan' ? ADDRESS_MS : FAR_MS;
  const limits = { beginsWithinMs: timeoutMs, silentForMs: timeoutMs, setTimer, signal };
  try {
    const bytes = await exchangeWhole({ transport, operation, body, ...limits }, MAX_ANSWER_BYTES);
    const refusal = findPlainRefusal(bytes);
    if (refusal !== undefined) return refusal;
    const answer = decodeEnvelope(bytes);
    if (answer.kind === 'hint') return failureOf(answer.code);
    if (answer.kind !== 'sessionAnswer' && answer.kind !== 'inviteAnswer') return 'wrong_gateway';
    return started.finish(answer.noise, now());
  } catch (error) {
    // Whatever has another address by now answers in its own language.
    if (error instanceof ChannelError) return error.code === 'malformed' ? 'offline' : 'wrong_gateway';
    if (error instanceof PathError) return error.hint ?? (isDead(error) ? 'offline' : 'broken');
    throw error;
  }
}

/** Silent, or not there. */
function isDead({ cause, wasNeverSent }: PathError): boolean {
  return cause instanceof PathError || wasNeverSent;
}

function failureOf(hint: number): HandshakeFailure {
  if (hint === HINT.handshakeRefused) return 'refused';
  if (hint === HINT.rateLimited || hint === HINT.tooManyCalls) return 'busy';
  return hint === HINT.shuttingDown ? 'offline' : 'incompatible';
}
