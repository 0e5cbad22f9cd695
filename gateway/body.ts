/** A request's body as it comes: counted against its route's cap, and never waited for without end. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
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

/**
 * A body that is declared to be short, in one piece: for as little as that, an iterator would cost more than the rest.
 * @throws {RequestError} `bad_request` where it is cut off; `request_timeout` where it stalls
 */
export function shortBody(request: IncomingMessage, { setTimer }: Pick<BodyOptions, 'setTimer'>): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) return reject(cutOff());
    const pieces: Buffer[] = [];
    const wait = (): (() => void) => setTimer(SILENT_BODY_MS, () => reject(stalled()));
    let cancel = wait();
    const onCut = (): void => {
      cancel();
      reject(cutOff());
    };
    request.on('data', (piece: Buffer) => {
      pieces.push(piece);
      if (request.complete) return;
      cancel();
      cancel = wait();
    });
    request.once('end', () => {
      cancel();
      request.off('close', onCut).off('error', onCut);
      resolve(pieces.length === 1 && pieces[0] !== undefined ? pieces[0] : Buffer.concat(pieces));
    });
    request.once('close', onCut).once('error', onCut);
  });
}

/** 0 for a request without a body; unbounded for one whose length shows only as it comes. */
export function declaredLength(headers: IncomingHttpHeaders): number {
  if (headers['transfer-encoding'] !== undefined) return Infinity;
  return Number(headers['content-length'] ?? 0);
}

/**
 * Before a byte of the body is read.
 * @throws {RequestError} `body_too_large` by its declared length; `not_implemented` for a transfer coding beside
 * "chunked" (RFC 9112, 6.1), which Node would leave in the body
 */
export function checkFraming(headers: IncomingHttpHeaders, maxBytes: number): void {
  const coding = headers['transfer-encoding'];
  if (coding !== undefined && coding.trim().toLowerCase() !== 'chunked') {
    throw new RequestError(
      'not_implemented',
      'The only transfer coding is "chunked". Use Content-Encoding to compress.',
    );
  }
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw bodyTooLarge(maxBytes);
}

/** Whether all of it has come. */
export function isHeard(request: IncomingMessage): boolean {
  return request.complete;
}

/** Of a sender that has its answer, and neither goes on nor leaves. */
export const ANSWERED_SILENCE_MS = 10_000;

/** What of a refused body is read and dropped after the answer went out. */
const MAX_DRAIN_BYTES = 64 * 1024 * 1024;

/**
 * The answer to a request that is still being sent: all of it at once, and its end when the request has ended. To end
 * it sooner may close the connection, and a client in the middle of sending would see a reset instead of the answer.
 */
export async function* answerEarly(text: string, request: IncomingMessage, setTimer: SetTimer): AsyncGenerator<string> {
  yield text;
  if (isHeard(request) || request.destroyed) return;
  // Whoever left off in the middle still listens, and nothing would come to anybody else.
  request.removeAllListeners('readable');
  let dropped = 0;
  const wait = (): (() => void) => setTimer(ANSWERED_SILENCE_MS, () => request.destroy());
  let cancel = wait();
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > MAX_DRAIN_BYTES) request.destroy();
    cancel();
    cancel = wait();
  });
  await new Promise((resolve) => request.once('end', resolve).once('close', resolve));
  cancel();
}

function stalled(): RequestError {
  const message = `The body stalled: no data for ${SILENT_BODY_MS / 1000} seconds. Send the request again.`;
  // RFC 9110 §15.5.9. What of the body may still come would be taken for the next request.
  return new RequestError('request_timeout', message, { headers: { connection: 'close' } });
}

function cutOff(): RequestError {
  return new RequestError('bad_request', 'The request was cut off.');
}

/** Of a route that takes so much. */
export function bodyTooLarge(maxBytes: number): RequestError {
  const size = maxBytes >= 1024 * 1024 ? `${maxBytes / 1024 / 1024} MiB` : `${maxBytes / 1024} KiB`;
  return new RequestError('body_too_large', `The body is larger than the ${size} that this route takes.`);
}
