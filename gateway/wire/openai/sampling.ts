/** The fields that OpenAI's chat and text completions share: how tokens are drawn, and how the answer is sent. Pure. */
import * as z from 'zod';
import type { ModelCall } from '../../../core/inference/model-port.ts';
import { defined } from '../defined.ts';
import { topK, topKSchema } from '../unbounded.ts';
import { stopSchema, stopSequences } from '../stop-sequences.ts';

export const samplingFields = {
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: topKSchema.nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  repetition_penalty: z.number().positive().max(10).nullish(),
  seed: z.int().nullish(),
  stop: stopSchema.nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
};

const samplingSchema = z.object(samplingFields);
type SamplingBody = z.output<typeof samplingSchema>;

/** The part of the port's call that these fields make up. */
export function samplingCall(body: SamplingBody): Partial<ModelCall> {
  return defined({
    temperature: body.temperature,
    topP: body.top_p,
    topK: topK(body.top_k),
    frequencyPenalty: body.frequency_penalty,
    presencePenalty: body.presence_penalty,
    seed: body.seed,
    stopSequences: stopSequences(body.stop),
  });
}
