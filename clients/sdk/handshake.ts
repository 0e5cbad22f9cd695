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
import type { Paths } from './paths.ts';
import type { Platform } from './platform.ts';
import type { Operation, Transport } from './transport.ts';

/** What is asked of one address before the next one is tried. */
const ADDRESS_MS = 4000;
/** Message 2 has 1408 bytes, longer by 256 for more terms. */
const MAX_ANSWER_BYTES = 8192;

/** The gateway and who asks it. A session and a pairing differ in nothing else. */
export interface HandshakeWith extends Omit<InitiatorOptions, 'crypto' | 'hints'> {
  readonly operation: Operation;
  readonly envelope: (noise: Uint8Array) => Envelope;
}

/** What is said when no path leads there: the most telling that any of them gave. */
const FAILURES = ['incompatible', 'refused', 'busy', 'wrong_gateway', 'offline'] as const;
type Failure = (typeof FAILURES)[number];

/** Takes the paths in their order, and makes the one that worked the current one. @throws PosternError */
export async function handshake(
  platform: Platform,
  paths: Paths,
  gateway: HandshakeWith,
  signal: AbortSignal,
): Promise<InitiatorSession> {
  const failures = new Set<Failure>();
  for (const transport of paths.inOrder) {
    const outcome = await handshakeTwice(platform, transport, gateway, signal);
    if (typeof outcome === 'string') {
      failures.add(outcome);
      continue;
    }
    paths.worked(transport);
    return outcome;
  }
  throw new PosternError(FAILURES.find((failure) => failures.has(failure)) ?? 'offline');
}

/** A path that breaks is tried once more, since its connection may only have been old; one that is silent is left. */
async function handshakeTwice(
  ...[platform, transport, gateway, signal]: Parameters<typeof handshakeOver>
): Promise<InitiatorSession | Failure> {
  const first = await handshakeOver(platform, transport, gateway, signal);
  const outcome = first === 'broken' ? await handshakeOver(platform, transport, gateway, signal) : first;
  return outcome === 'broken' ? 'offline' : outcome;
}

async function handshakeOver(
  platform: Platform,
  transport: Transport,
  { operation, envelope, ...noise }: HandshakeWith,
  signal: AbortSignal,
): Promise<InitiatorSession | Failure | 'broken'> {
  const { crypto, setTimer, now, clientVersion } = platform;
  const started = startSession({ crypto, hints: { clientVersion }, ...noise });
  const body = joinBytes([encodeEnvelope(envelope(started.message1))]);
  const patience = { beginsWithinMs: ADDRESS_MS, silentForMs: ADDRESS_MS, setTimer, signal };
  try {
    const answer = decodeEnvelope(await exchangeWhole({ transport, operation, body, ...patience }, MAX_ANSWER_BYTES));
    if (answer.kind === 'hint') return failureOf(answer.code);
    if (answer.kind !== 'sessionAnswer' && answer.kind !== 'inviteAnswer') return 'wrong_gateway';
    return started.finish(answer.noise, now());
  } catch (error) {
    // Whatever has another address by now answers in its own language.
    if (error instanceof ChannelError) return error.code === 'malformed' ? 'offline' : 'wrong_gateway';
    if (error instanceof PathError) return error.cause instanceof PathError ? 'offline' : 'broken';
    throw error;
  }
}

function failureOf(hint: number): Failure {
  if (hint === HINT.handshakeRefused) return 'refused';
  if (hint === HINT.rateLimited || hint === HINT.tooManyCalls) return 'busy';
  return hint === HINT.shuttingDown ? 'offline' : 'incompatible';
}
