/** A handler's reply onto the wire: JSON, text, or a stream that goes no faster than its reader. */
import { once } from 'node:events';
import { Socket } from 'node:net';
import type { ServerResponse } from 'node:http';
import type { FastifyReply } from 'fastify';
import type { Reply } from './route.ts';
import { whenClosed, whenHalfClosed } from './when-closed.ts';

/** A stream says nothing for no longer than this, so that no proxy or phone takes the connection for dead. */
const KEEP_ALIVE_MS = 15_000;

/** As long as a reader's system may take to say that nobody is there. */
const PROBE_MS = 250;

/** A comment: every reader of server-sent events skips it. */
const KEEP_ALIVE = ': keep-alive\n\n';

export async function sendReply(reply: FastifyReply, { status = 200, headers = {}, body, cut }: Reply): Promise<void> {
  reply.code(status).headers(headers);
  if (typeof body === 'string') {
    return void reply.type(headers['content-type'] ?? 'text/plain; charset=utf-8').send(body);
  }
  if (!(Symbol.asyncIterator in body)) return void reply.send(body);
  reply.hijack();
  reply.raw.writeHead(status, plainHeaders(reply));
  const { raw: response } = reply;
  const onCut = (): void => void response.destroy();
  cut?.addEventListener('abort', onCut, { once: true });
  const isEventStream = headers['content-type']?.startsWith('text/event-stream') === true;
  // Inside a sealed call the channel has signs of life of its own.
  const saysAlive = isEventStream && reply.request.raw.socket instanceof Socket;
  await sendStream(response, body, { saysAlive, hasBody: reply.request.method !== 'HEAD' });
}

/** Hijacking takes Fastify out of the way, its headers with it. */
function plainHeaders(reply: FastifyReply): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value : String(value);
  }
  return headers;
}

async function sendStream(
  response: ServerResponse,
  pieces: AsyncIterable<string | Uint8Array>,
  { saysAlive, hasBody }: { readonly saysAlive: boolean; readonly hasBody: boolean },
): Promise<void> {
  // To HEAD no piece is sent; one is taken all the same, since a generator lets go only of what it has begun.
  if (!hasBody) response.end();
  // A reader that left is noticed at the next piece; one that never comes must be told of by the socket.
  const gone = new AbortController();
  whenClosed(response, () => gone.abort());
  const keepAlive = saysAlive ? setInterval(() => sayAlive(response), KEEP_ALIVE_MS) : undefined;
  if (saysAlive) whenHalfClosed(response, () => probe(response));
  try {
    for await (const piece of pieces) {
      if (response.destroyed || !hasBody) return;
      keepAlive?.refresh();
      if (!response.write(piece)) await once(response, 'drain', { signal: gone.signal });
    }
    response.end();
  } catch (error) {
    if (!gone.signal.aborted) throw error;
  } finally {
    clearInterval(keepAlive);
  }
}

/** To a reader that has half-closed: if it is gone, the first write makes its system say so, and the second one fails. */
function probe(response: ServerResponse): void {
  sayAlive(response);
  setTimeout(() => sayAlive(response), PROBE_MS).unref();
}

/** Not to a reader that has not taken what came before: for as long as it does not, comments would pile up. */
function sayAlive(response: ServerResponse): void {
  if (!response.writableNeedDrain && !response.writableEnded) response.write(KEEP_ALIVE);
}
