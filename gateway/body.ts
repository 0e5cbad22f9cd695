/** Reads a request's body up to its route's cap, and not a byte of it into memory when it will be refused anyway. */
import type { IncomingMessage } from 'node:http';
import { RequestError } from './errors.ts';

interface ReadOptions {
  readonly maxBytes: number;
  /** False counts the bytes and forgets them: an over-long body is still 413, whoever sent it. */
  readonly keep: boolean;
}

/**
 * What more of an over-long body is read and dropped after the answer went out. Closing at once would reset the
 * connection, and a client in the middle of sending would see that instead of the answer.
 */
const MAX_DRAIN_BYTES = 64 * 1024 * 1024;

/** @throws {RequestError} `body_too_large` as soon as the declared or the actual length says so */
export function readBody(request: IncomingMessage, { maxBytes, keep }: ReadOptions): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > maxBytes + MAX_DRAIN_BYTES) request.destroy();
      if (length > maxBytes) {
        chunks.length = 0;
        reject(bodyTooLarge(maxBytes));
      } else if (keep) chunks.push(chunk);
    });
    request.on('end', () => resolve(Buffer.concat(chunks)));
    request.on('error', reject);
    request.on('close', () => reject(new RequestError('bad_request', 'The request was cut off.')));
  });
}

/** @throws {RequestError} `body_too_large`, before a byte of the body is read */
export function checkDeclaredLength(request: IncomingMessage, maxBytes: number): void {
  if (Number(request.headers['content-length'] ?? 0) <= maxBytes) return;
  // Nobody else will read it now; what is unread when the answer ends would reset the connection.
  let drained = 0;
  request.on('data', (chunk: Buffer) => {
    drained += chunk.length;
    if (drained > maxBytes + MAX_DRAIN_BYTES) request.destroy();
  });
  throw bodyTooLarge(maxBytes);
}

function bodyTooLarge(maxBytes: number): RequestError {
  const size = maxBytes >= 1024 * 1024 ? `${maxBytes / 1024 / 1024} MiB` : `${maxBytes / 1024} KiB`;
  return new RequestError('body_too_large', `The body is larger than the ${size} that this route takes.`);
}
