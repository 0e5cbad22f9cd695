/** Home's answer onto the local wire: its status and headers at once, its body no faster than the client reads. */
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';

const LINE_FEED = 10;

/** RFC 9110 §7.6.1: about one connection, and this is another one. What pages may read is decided here, not at home. */
const OWN_HEADERS =
  /^(?:connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|access-control-.*|set-cookie)$/;

interface Sending {
  /** Fires when the client has left. */
  readonly gone: AbortSignal;
  /** What a stream can still say of its failure; `undefined` for an answer of another type. */
  readonly lastWords: (error: unknown, type: string) => string | undefined;
}

/**
 * @throws what the body throws when it breaks off; the client then sees that the answer is not whole, never an
 * end, and a stream says why. Where the client has left, nothing
 */
export async function sendAnswer(
  response: ServerResponse,
  answer: Response,
  { gone, lastWords }: Sending,
): Promise<void> {
  const own = [...answer.headers].filter(([name]) => !OWN_HEADERS.test(name));
  response.writeHead(answer.status, Object.fromEntries(own));
  // A stream's first event may be far away, and clients wait for the status.
  response.flushHeaders();
  if (answer.body === null) return void response.end();
  const reader = answer.body.getReader();
  let isInLine = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (gone.aborted) return;
      if (done) return void response.end();
      isInLine = value.at(-1) !== LINE_FEED;
      if (!response.write(value)) await once(response, 'drain', { signal: gone });
    }
  } catch (error) {
    if (gone.aborted) return;
    const words = lastWords(error, answer.headers.get('content-type') ?? '');
    if (words === undefined) response.destroy();
    // What was cut off in the middle of an event is none. Whoever does not know this one still sees no end.
    else response.write(isInLine ? `\n\n${words}` : words, () => response.destroy());
    throw error;
  } finally {
    // Lets go of the answer where it was not read to its end; one that has ended or failed takes no notice.
    void reader.cancel().catch(() => undefined);
  }
}
