/**
 * Whether what comes to the relay gets here: the gateway joins its own relay as a client would, and sends itself some
 * random bytes. Only then is it connected, whatever the relay says.
 */
import { randomBytes } from 'node:crypto';
import { RELAY_CODE, RelayError } from '../relay/wire/codes.ts';
import { TAG_BYTES } from '../relay/wire/frame.ts';
import type { Clock } from '../relay/wire/heartbeat.ts';
import { joinRelay, type WebSocketLike } from '../relay/wire/join-relay.ts';
import { OP } from '../relay/wire/op.ts';
import type { PeerStream } from '../relay/wire/stream-set.ts';
import type { AllowedTag } from './allow-list.ts';

const PROBE_BYTES = 32;
const PROBE_TIMEOUT_MS = 8_000;
const TAG_LIFE_MS = 10 * 60_000;

export function makeProbeTag(now: () => number): AllowedTag {
  return { tag: new Uint8Array(randomBytes(TAG_BYTES)), expiresAtMs: now() + TAG_LIFE_MS, tagClass: 'probe' };
}

interface ProbeOptions {
  readonly url: string;
  readonly routingId: Uint8Array;
  readonly tag: Uint8Array;
  readonly clock: Clock;
  readonly webSocket: (url: string, protocol: string) => WebSocketLike;
}

/** @throws RelayError if nothing came back, or something else */
export async function probe({ url, routingId, tag, clock, webSocket }: ProbeOptions): Promise<void> {
  const joined = await joinRelay({ ...clock, webSocket, url, routingId, tag, timeoutMs: PROBE_TIMEOUT_MS });
  const cancel = clock.setTimer(PROBE_TIMEOUT_MS, () => joined.close());
  try {
    const sent = randomBytes(PROBE_BYTES);
    const stream = joined.open(OP.probe);
    await stream.write(sent);
    stream.end();
    const pieces: Uint8Array[] = [];
    for await (const piece of stream.answer) pieces.push(piece);
    if (Buffer.concat(pieces).equals(sent)) return;
  } finally {
    cancel();
    joined.close();
  }
  throw new RelayError(RELAY_CODE.protocol, 'something else came back through the relay than was sent');
}

/** The gateway's end of it. */
export async function answerProbe(stream: PeerStream): Promise<void> {
  let echoed = 0;
  for await (const piece of stream.incoming) {
    echoed += piece.length;
    if (echoed > PROBE_BYTES) return stream.reset(RELAY_CODE.tooMany);
    await stream.write(piece);
  }
  stream.end();
}
