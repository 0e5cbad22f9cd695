/**
 * A model whose calls somebody looks on at: to log them, to count them. The model does not know, so it can be any; and
 * nothing is asked of it that would not be asked without this.
 */
import { withCalls, type LanguageModel, type ModelAnswer, type ModelStreamPart } from './model-port.ts';

/** Looks on at one call while it is answered. */
export interface CallObserver {
  /** Of an answer that streams, as it comes. */
  onPart(part: ModelStreamPart): void;
  /** An answer that comes whole. */
  onAnswer(answer: ModelAnswer): void;
  /** In place of an answer's end. Not told where the caller itself gave up. */
  onFailure(error: unknown): void;
}

/**
 * Parts that are taken from the model before its reader wants them, so that the times at which they are seen are the
 * model's and not those of a slow client; beyond it the model waits.
 */
const READ_AHEAD_PARTS = 1024;

/** @param observe called at the beginning of each call */
export function observed(model: LanguageModel, observe: () => CallObserver): LanguageModel {
  return withCalls(model, {
    doGenerate: async (call) => {
      const observer = forCaller(observe(), call.abortSignal);
      const answer = await tellFailure(() => model.doGenerate(call), observer);
      observer.onAnswer(answer);
      return answer;
    },
    doStream: async (call) => {
      const observer = forCaller(observe(), call.abortSignal);
      const { stream, ...rest } = await tellFailure(() => model.doStream(call), observer);
      return { ...rest, stream: observedStream(stream, observer) };
    },
  });
}

/** What fails because its caller left is nobody's failure. */
function forCaller(observer: CallObserver, signal: AbortSignal | undefined): CallObserver {
  return {
    onPart: (part) => observer.onPart(part),
    onAnswer: (answer) => observer.onAnswer(answer),
    onFailure: (error) => {
      if (signal?.aborted !== true) observer.onFailure(error);
    },
  };
}

async function tellFailure<Result>(answer: () => PromiseLike<Result>, observer: CallObserver): Promise<Result> {
  try {
    return await answer();
  } catch (error) {
    observer.onFailure(error);
    throw error;
  }
}

function observedStream(
  stream: ReadableStream<ModelStreamPart>,
  observer: CallObserver,
): ReadableStream<ModelStreamPart> {
  const reader = stream.getReader();
  return new ReadableStream<ModelStreamPart>(
    {
      async pull(controller) {
        const { done, value } = await tellFailure(() => reader.read(), observer);
        if (done) return controller.close();
        if (value.type === 'error') observer.onFailure(value.error);
        else observer.onPart(value);
        controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: READ_AHEAD_PARTS },
  );
}
