/** Takes in a request's body, whose length has to be known before any of it can be sealed. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { MAX_SEALED_BODY_BYTES } from '../../channel/request-bounds.ts';
import { RequestRefused } from './failure.ts';

/** What of a refused body is read and dropped after the answer went out. */
const MAX_DRAIN_BYTES = 64 * 1024 * 1024;

/** @throws {RequestRefused} `body_too_large` as soon as the declared or the actual length says so; `bad_request` if it is cut off */
export function readBody(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  if (Number(request.headers['content-length'] ?? 0) > MAX_SEALED_BODY_BYTES) return Promise.reject(tooLarge());
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length <= MAX_SEALED_BODY_BYTES) return void chunks.push(chunk);
      chunks.length = 0;
      reject(tooLarge());
    });
    request.on('end', () => resolve(joined(chunks, length)));
    request.on('error', reject);
    request.on('close', () => reject(new RequestRefused('bad_request', 'The request was cut off.')));
  });
}

function joined(chunks: readonly Buffer[], length: number): Uint8Array<ArrayBuffer> {
  const body = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    body.set(chunk, at);
    at += chunk.length;
  }
  return body;
}

const tooLarge = () =>
  new RequestRefused(
    'body_too_large',
    `The body is larger than the ${MAX_SEALED_BODY_BYTES} bytes that go through the channel.`,
  );

/**
 * Ends an answer that was written while its request is still being sent, when that has ended. To end it sooner may close
 * the connection, and a client in the middle of sending would see a reset instead of the answer.
 */
export async function endAfterRequest(response: ServerResponse, request: IncomingMessage): Promise<void> {
  if (!request.complete && !request.destroyed) {
    let dropped = 0;
    request.on('data', (chunk: Buffer) => {
      dropped += chunk.length;
      if (dropped > MAX_DRAIN_BYTES) request.destroy();
    });
    await new Promise((resolve) => request.once('end', resolve).once('close', resolve));
  }
  response.end();
}
