/**
 * Streams that wait for their turn, or for their model, begin all the same after a while: a client, and whatever is
 * between, sees signs of life then. What goes wrong before that has its status; later it is told in the stream.
 */
import type { Inference } from '../core/inference/inference.ts';
import { withCalls, type LanguageModel, type ModelStreamPart } from '../core/inference/model-port.ts';
import { within, type SetTimer } from '../core/timer.ts';

export const STREAM_BEGINS_MS = 15_000;

/** The same inference, whose streams begin in time. */
export function withLateStreams(inference: Inference, setTimer: SetTimer): Inference {
  return {
    ...inference,
    async languageModel(id, owner) {
      const model = await inference.languageModel(id, owner);
      const doStream: LanguageModel['doStream'] = async (call) => ({
        stream: await begun(model.doStream(call), setTimer),
      });
      return withCalls(model, { doStream });
    },
  };
}

async function begun(
  starting: ReturnType<LanguageModel['doStream']>,
  setTimer: SetTimer,
): Promise<ReadableStream<ModelStreamPart>> {
  const started = Promise.resolve(starting).then(({ stream }) => stream);
  const stream = await within(STREAM_BEGINS_MS, started, setTimer);
  return stream ?? ReadableStream.from(partsOf(started));
}

async function* partsOf(started: Promise<ReadableStream<ModelStreamPart>>): AsyncGenerator<ModelStreamPart> {
  yield* await started;
}
