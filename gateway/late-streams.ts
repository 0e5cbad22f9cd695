/**
 * Streams that wait for their turn, or for their model, begin all the same after a while: a client, and whatever is
 * between, sees signs of life then. What goes wrong before that has its status; later it is told in the stream.
 */
import type { Inference } from '../core/inference/inference.ts';
import {
  withCalls,
  type LanguageModel,
  type ModelStreamPart,
  type StreamedAnswer,
} from '../core/inference/model-port.ts';
import { within, type SetTimer } from '../core/timer.ts';

export const STREAM_BEGINS_MS = 15_000;

/** The same inference, whose streams begin in time. */
export function withLateStreams(inference: Inference, setTimer: SetTimer): Inference {
  return {
    ...inference,
    async languageModel(id, owner) {
      const model = await inference.languageModel(id, owner);
      const doStream: LanguageModel['doStream'] = (call) => begun(model.doStream(call), setTimer);
      return withCalls(model, { doStream });
    },
  };
}

async function begun(starting: ReturnType<LanguageModel['doStream']>, setTimer: SetTimer): Promise<StreamedAnswer> {
  const started = Promise.resolve(starting);
  return (await within(STREAM_BEGINS_MS, started, setTimer)) ?? { stream: ReadableStream.from(partsOf(started)) };
}

async function* partsOf(started: Promise<StreamedAnswer>): AsyncGenerator<ModelStreamPart> {
  yield* (await started).stream;
}
