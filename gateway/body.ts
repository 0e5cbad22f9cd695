/** A request's body as it comes: counted against its route's cap, and never waited for without end. */
import type { IncomingMessage } from 'node:http';
import type { SetTimer } from '../core/timer.ts';
import { RequestError } from './errors.ts';

/** A body of which no byte comes for so long is given up, over HTTP as through a relay. */
export const SILENT_BODY_MS = 60_000;

interface BodyOptions {
  readonly maxBytes: number;
  readonly setTimer: SetTimer;
}

/**
 * The body as it comes, and no further than it is asked for. Leaving off in the middle ends nothing: whoever reads on
 * later, reads on from there.
 * @throws {RequestError} `body_too_large` as soon as the actual length says so; `bad_request` where it is cut off;
 * `request_timeout` where it stalls
 */
export function bodyPieces(
  request: IncomingMessage,
  { maxBytes, setTimer }: BodyOptions,
): AsyncIterableIterator<Uint8Array> {
  const chunks = request.iterator({ destroyOnReturn: false });
  let length = 0;
  const pieces: AsyncIterableIterator<Uint8Array> = {
    [Symbol.asyncIterator]: () => pieces,
    async next() {
      const step = await soon(chunks, setTimer);
      if (step.done === true) return step;
      length += step.value.length;
      if (length <= maxBytes) return step;
      await chunks.return?.();
      throw bodyTooLarge(maxBytes);
    },
  };
  return pieces;
}

type Step = IteratorResult<Buffer, undefined>;

function soon(chunks: AsyncIterator<Buffer, undefined>, setTimer: SetTimer): Promise<Step> {
  return new Promise((resolve, reject) => {
    const cancel = setTimer(SILENT_BODY_MS, () => reject(stalled()));
    chunks
      .next()
      .then(resolve, () => reject(cutOff()))
      .finally(cancel);
  });
}
/** @throws {RequestError} `body_too_large`, before a byte of the body is read */
export function checkDeclaredLength(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers['content-length'] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
}

/** Whether all of it has come. One that was made in process knows no `complete`. */
export function isHeard(request: IncomingMessage): boolean {
  return request.complete || request.readableEnded;
}

/** What of a refused body is read and dropped after the answer went out. */
const MAX_DRAIN_BYTES = 64 * 1024 * 1024;

/**
 * The answer to a request that is still being sent: all of it at once, and its end when the request has ended. To end
 * it sooner may close the connection, and a client in the middle of sending would see a reset instead of the answer.
 */
export async function* answerEarly(text: string, request: IncomingMessage): AsyncGenerator<string> {
  yield text;
  if (isHeard(request) || request.destroyed) return;
  let dropped = 0;
  const silence = setTimeout(() => request.destroy(), SILENT_BODY_MS);
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    silence.refresh();
    if (dropped > MAX_DRAIN_BYTES) request.destroy();
  });
  await new Promise((resolve) => request.once('end', resolve).once('close', resolve));
  clearTimeout(silence);
}

function stalled(): RequestError {
  const message = `No byte of the body came for ${SILENT_BODY_MS / 1000} seconds.`;
  // RFC 9110 §15.5.9. What of the body may still come would be taken for the next request.
  return new RequestError('request_timeout', message, { headers: { connection: 'close' } });
}

function cutOff(): RequestError {
  return new RequestError('bad_request', 'The request was cut off.');
}

function bodyTooLarge(maxBytes: number): RequestError {
  const size = maxBytes >= 1024 * 1024 ? `${maxBytes / 1024 / 1024} MiB` : `${maxBytes / 1024} KiB`;
  return new RequestError('body_too_large', `The body is larger than the ${size} that this route takes.`);
}
