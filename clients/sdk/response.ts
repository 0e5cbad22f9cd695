/** An answer as the standard `Response`, whose body is opened as fast as it is read and no faster. */
import type { BegunAnswer } from './dispatch.ts';
import { PosternError } from './errors.ts';
import type { AnswerEvents } from './sealed-call.ts';
import { takeData } from './sealed-call.ts';

/** Fetch standard §2.2.3, "null body status", as far as an answer can have one. */
const BODYLESS = new Set([204, 205, 304]);

export interface ResponseOptions {
  readonly method: string;
  readonly signal: AbortSignal;
  /** Whoever reads the body has given it up. */
  readonly stop: (reason: unknown) => void;
  /** The answer has ended, in whichever way. */
  readonly onEnd: () => void;
}

/** @throws as the events do, if the answer is to have no body */
export async function responseOf({ head, events }: BegunAnswer, options: ResponseOptions): Promise<Response> {
  const { status } = head;
  const headers = head.headers.map(([name, value]): [string, string] => [name, value]);
  const hasBody = options.method !== 'HEAD' && !BODYLESS.has(status);
  if (!hasBody) {
    while ((await takeData(events)) !== undefined);
    options.onEnd();
  }
  try {
    return new Response(hasBody ? bodyOf(events, options) : null, { status, headers });
  } catch (error) {
    throw new PosternError('incompatible', { cause: error });
  }
}

function bodyOf(events: AnswerEvents, { signal, stop, onEnd }: ResponseOptions): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        // Also while nobody reads.
        signal.addEventListener('abort', () => controller.error(signal.reason), { once: true });
      },
      async pull(controller) {
        const data = await takeData(events).catch((error: unknown) => {
          onEnd();
          throw error;
        });
        if (data !== undefined) {
          controller.enqueue(data);
          return;
        }
        onEnd();
        controller.close();
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
}
