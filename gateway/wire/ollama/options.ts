/**
 * What Ollama's chat and generate requests have in common: `options`, `format`, `think`, `keep_alive`. Pure.
 *
 * Options that choose how tokens are drawn are honoured or refused. Those that lay out memory and hardware are the
 * owner's to decide, in the settings; clients send them with every request, so they are ignored, and named as such.
 * `num_ctx` has a model loaded with as long a context, as far as the model, the memory and the owner allow. It makes none
 * shorter: a conversation is refused where it is too long for the model, and never cut.
 */
import * as z from 'zod';
import type { ModelCall, ModelOptions } from '../../../core/inference/model-port.ts';
import { RequestError } from '../../errors.ts';
import { defined } from '../defined.ts';
import { jsonObjectSchema } from '../json-object.ts';
import { stopSchema, stopSequences } from '../stop-sequences.ts';
import { NO_TOKEN_LIMIT, topK, topKSchema } from '../unbounded.ts';

/** Ollama has no bound; any token is as good as another long before this one. */
const MAX_TEMPERATURE = 100;

export const optionsSchema = z.looseObject({
  temperature: z.number().min(0).max(MAX_TEMPERATURE).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: topKSchema.nullish(),
  min_p: z.number().min(0).max(1).nullish(),
  repeat_penalty: z.number().positive().max(10).nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  seed: z.int().nullish(),
  num_predict: z.int().min(-2).nullish(),
  num_ctx: z.int().min(0).nullish(),
  repeat_last_n: z.int().min(-1).nullish(),
  stop: stopSchema.nullish(),
});
type Options = z.output<typeof optionsSchema>;

/** Ways of drawing tokens that the engine does not have, each with the value that asks for nothing of the kind. */
const UNAVAILABLE_OPTIONS: Readonly<Record<string, unknown>> = {
  mirostat: 0,
  tfs_z: 1,
  typical_p: 1,
  penalize_newline: true,
};

/** @throws {RequestError} `bad_request` */
export function refuseUnavailableOptions(options: Options): void {
  for (const [name, neutral] of Object.entries(UNAVAILABLE_OPTIONS)) {
    const value = options[name] ?? neutral;
    if (value === neutral) continue;
    const param = `options.${name}`;
    throw new RequestError('bad_request', `${param}: only ${JSON.stringify(neutral)} is possible here; leave it out`, {
      param,
    });
  }
}

/** What only the owner decides: the layout of memory, and which hardware does the work. */
const OWNER_OPTIONS = [
  'num_keep',
  'num_batch',
  'num_gpu',
  'main_gpu',
  'num_thread',
  'numa',
  'low_vram',
  'f16_kv',
  'logits_all',
  'vocab_only',
  'use_mmap',
  'use_mlock',
  'embedding_only',
];

/** The names, as fields of the request, of what is accepted and has no effect. */
export function ignoredOptions(options: Options): string[] {
  return OWNER_OPTIONS.filter((name) => options[name] != null).map((name) => `options.${name}`);
}

/** The fields of the port's call that have a place of their own; `modelOptions` gives the rest. */
export function samplingFields(options: Options): Partial<ModelCall> {
  const { stop, seed } = options;
  return defined({
    temperature: options.temperature,
    topP: options.top_p,
    topK: topK(options.top_k),
    frequencyPenalty: options.frequency_penalty,
    presencePenalty: options.presence_penalty,
    // Ollama's own default, -1, asks for a seed that nobody chose.
    seed: seed == null || seed < 0 ? undefined : seed,
    stopSequences: stopSequences(stop),
    maxOutputTokens: maxOutputTokens(options.num_predict),
  });
}

/** -1 (no end), -2 (to the end of the context) and 0 (which Ollama takes for -1): as much as there is room for. */
function maxOutputTokens(numPredict: number | null | undefined): number | undefined {
  if (numPredict == null) return undefined;
  return numPredict > 0 ? numPredict : NO_TOKEN_LIMIT;
}

export const thinkSchema = z
  .union([z.boolean(), z.enum(['low', 'medium', 'high', 'max'])], {
    error: 'expected true, false, "low", "medium", "high" or "max"',
  })
  .nullish();

export function modelOptions(options: Options): ModelOptions {
  return defined({
    minP: options.min_p,
    repetitionPenalty: options.repeat_penalty,
    // 0 is what forms send for none.
    contextTokens: options.num_ctx || undefined,
    penaltyWindow: options.repeat_last_n,
  });
}

/** `true` is what a model that can think does by itself. */
export function reasoning(think: z.output<typeof thinkSchema>): ModelCall['reasoning'] {
  if (think === false) return 'none';
  return typeof think === 'string' ? think : undefined;
}

/** Ollama's Go client sends the empty string for "none". */
export const formatSchema = z
  .union([z.enum(['json', '']), jsonObjectSchema], {
    error: 'expected "json" or a JSON schema as an object',
  })
  .nullish();

export function responseFormat(format: z.output<typeof formatSchema>): ModelCall['responseFormat'] {
  if (format == null || format === '') return undefined;
  return format === 'json' ? { type: 'json' } : { type: 'json', schema: format };
}

/** https://pkg.go.dev/time#ParseDuration, which is what Ollama reads it with. */
const GO_DURATION = /^[+-]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/;
/** The same as the number that it reads as. */
const SECONDS = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

/** Seconds as a number, or a duration with units; negative means for ever. Forms send an empty field for nothing said. */
export const keepAliveSchema = z
  .union(
    [
      z.number(),
      z.string().max(64, { abort: true }).regex(GO_DURATION),
      z.string().max(64).regex(SECONDS),
      z.literal(''),
    ],
    {
      error: 'expected a number of seconds, or a duration such as "5m" or "1h30m"',
    },
  )
  .nullish();

/** Whether it asks to let go of the model at once. */
export function isZeroDuration(keepAlive: z.output<typeof keepAliveSchema>): boolean {
  if (keepAlive == null || keepAlive === '') return false;
  return typeof keepAlive === 'number' ? keepAlive === 0 : !/[1-9]/.test(keepAlive);
}
