/** An answer onto the wire: text, or a stream that goes no faster than its reader. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Answer } from '../pipeline/exchange.ts';
import { eventStream } from '../wire/event-stream.ts';
import { ndjson } from '../wire/ndjson.ts';
import type { StreamFormat } from '../wire/stream-format.ts';
import { whenClosed, whenHalfClosed } from '../when-closed.ts';

/** A stream says nothing for no longer than this, so that no proxy or phone takes the connection for dead. */
const KEEP_ALIVE_MS = 15_000;

/** As long as a reader's system may take to say that nobody is there. */
const PROBE_MS = 250;

/** Of other streams nobody knows what may be put into them. */
const FORMATS: readonly StreamFormat[] = [eventStream, ndjson];

/** @throws what the pieces throw, unless their reader is gone */
export async function sendAnswer(
  { method }: IncomingMessage,
  response: ServerResponse,
  { status, headers, body, cut }: Answer,
): Promise<void> {
  // Nobody is left to tell.
  if (response.destroyed) return typeof body === 'string' ? undefined : letGo(body);
  response.writeHead(status, headers);
  if (typeof body === 'string') return void response.end(body);
  if (method === 'HEAD') {
    response.end();
    return letGo(body);
  }
  cut?.addEventListener('abort', () => response.destroy(), { once: true });
  const type = headers['content-type'] ?? '';
  await sendStream(response, body, FORMATS.find(({ contentType }) => type.startsWith(contentType))?.keepAlive);
}

/** A generator lets go only of what it has begun, so one piece is taken. */
async function letGo(pieces: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of pieces) return;
}

async function sendStream(
  response: ServerResponse,
  pieces: AsyncIterable<string | Uint8Array>,
  filler: string | undefined,
): Promise<void> {
  // A reader that left is noticed at the next piece; one that never comes must be told of by the socket.
  let goOn = (): void => undefined;
  response.on('drain', () => goOn());
  whenClosed(response, () => goOn());
  const keepAlive = filler === undefined ? undefined : setInterval(() => fill(response, filler), KEEP_ALIVE_MS);
  if (filler !== undefined) whenHalfClosed(response, () => probe(response, filler));
  // A first piece that comes at once goes out with the head; a late one must not keep its client waiting for the status.
  const begin = filler === undefined ? undefined : setImmediate(() => response.flushHeaders());
  try {
    for await (const piece of pieces) {
      clearImmediate(begin);
      if (response.destroyed) return;
      keepAlive?.refresh();
      if (response.write(piece)) continue;
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      if (response.destroyed) return;
    }
    response.end();
  } catch (error) {
    if (!response.destroyed) throw error;
  } finally {
    clearImmediate(begin);
    clearInterval(keepAlive);
  }
}

/** To a reader that has half-closed: if it is gone, the first write makes its system say so, and the second one fails. */
function probe(response: ServerResponse, filler: string): void {
  fill(response, filler);
  setTimeout(() => fill(response, filler), PROBE_MS).unref();
}

/** Not for a reader that has not taken what came before: for as long as it does not, fillers would pile up. */
function fill(response: ServerResponse, filler: string): void {
  if (!response.writableNeedDrain && !response.writableEnded) response.write(filler);
}
