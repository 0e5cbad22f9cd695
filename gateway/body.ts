/** Reads a request's body up to its route's cap, and not a byte of it into memory when it will be refused anyway. */
import type { IncomingMessage } from 'node:http';
import { RequestError } from './errors.ts';

interface ReadOptions {
  readonly maxBytes: number;
  /** False counts the bytes and forgets them: an over-long body is still 413, whoever sent it. */
  readonly keep: boolean;
}

/** @throws {RequestError} `body_too_large` as soon as the declared or the actual length says so */
export function readBody(request: IncomingMessage, { maxBytes, keep }: ReadOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes) {
        chunks.length = 0;
        reject(bodyTooLarge(maxBytes));
      } else if (keep) chunks.push(chunk);
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => {
      // Most requests close whole; an error that nobody sees would cost them its stack.
      if (!request.complete) reject(cutOff());
    });
  });
}

/**
 * The body as it comes. Leaving off in the middle ends nothing: whoever reads on later, reads on from there.
 * @throws {RequestError} `body_too_large` as soon as the actual length says so; `bad_request` where it is cut off
 */
export function streamBody(request: IncomingMessage, maxBytes: number): AsyncIterable<Uint8Array> {
  const chunks = request.iterator({ destroyOnReturn: false });
  let length = 0;
  const body: AsyncIterable<Uint8Array> & AsyncIterator<Uint8Array> = {
    [Symbol.asyncIterator]: () => body,
    async next() {
      const step: IteratorResult<Buffer, undefined> = await chunks.next().catch(() => Promise.reject(cutOff()));
      if (step.done === true) return step;
      length += step.value.length;
      if (length <= maxBytes) return step;
      await chunks.return?.();
      throw bodyTooLarge(maxBytes);
    },
  };
  return body;
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
  request.on('data', (chunk: Buffer) => {
    dropped += chunk.length;
    if (dropped > MAX_DRAIN_BYTES) request.destroy();
  });
  await new Promise((resolve) => request.once('end', resolve).once('close', resolve));
}

function cutOff(): RequestError {
  return new RequestError('bad_request', 'The request was cut off.');
}

function bodyTooLarge(maxBytes: number): RequestError {
  const size = maxBytes >= 1024 * 1024 ? `${maxBytes / 1024 / 1024} MiB` : `${maxBytes / 1024} KiB`;
  return new RequestError('body_too_large', `The body is larger than the ${size} that this route takes.`);
}
