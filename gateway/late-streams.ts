/**
 * Streams that wait for their turn, or for their model, begin all the same after a while: a client, and whatever is
 * between, sees signs of life then. What goes wrong before that has its status; later it is told in the stream.
 */
import type { LocalInference } from '../core/inference/local/local-inference.ts';
import type { LanguageModel, ModelStreamPart } from '../core/inference/model-port.ts';
import { within, type SetTimer } from '../core/timer.ts';

export const STREAM_BEGINS_MS = 15_000;

/** The same inference, whose streams begin in time. */
export function withLateStreams(inference: LocalInference, setTimer: SetTimer): LocalInference {
  return {
    ...inference,
    async languageModel(id, asking) {
      const model = await inference.languageModel(id, asking);
      return { ...model, doStream: async (call) => ({ stream: await begun(model.doStream(call), setTimer) }) };
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
