/** The settings of local models: where they are, how they are run, and how they answer where a request does not say. */
import { homedir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import type { SettingsOf } from '../../config/setting.ts';

/** Longer than any file name. */
const MAX_NAME_LENGTH = 255;
/** All of them are looked through for a name that no model has. */
const MAX_ALIASES = 100;
const ALIASES_EXPECTED = 'expected names and the models they stand for, such as {"claude-*": "foundation"}';

const aliasText = z
  .string(ALIASES_EXPECTED)
  .regex(/^[^\p{C}\p{Zl}\p{Zp}]+$/u, ALIASES_EXPECTED)
  .max(MAX_NAME_LENGTH, ALIASES_EXPECTED);

export const modelSettings = {
  'models.folder': {
    schema: z.string().min(1).default(join(homedir(), 'MLXModels')),
    environment: 'SVC_MODELS_DIR',
    isPath: true,
    meaning: 'where model files (*.gguf) are',
  },
  'models.discover': {
    schema: z.boolean().default(true),
    meaning: 'also use the models that LM Studio and Ollama have downloaded',
  },
  'models.aliases': {
    schema: z
      .record(aliasText, aliasText, ALIASES_EXPECTED)
      .refine((aliases) => Object.keys(aliases).length <= MAX_ALIASES, `expected at most ${MAX_ALIASES} names`)
      .default({}),
    isLive: true,
    meaning: 'names, or patterns such as "claude-*", that clients may use for a model; see "postern models alias"',
  },
} as const;
export type ModelSettings = SettingsOf<typeof modelSettings>;

export const inferenceSettings = {
  'inference.threads': {
    schema: z.int().min(1).max(256).nullable().default(null),
    meaning: 'CPU threads that generate; null takes all cores but one',
  },
  'inference.contextTokens': {
    schema: z.int().min(256).max(1_048_576).nullable().default(null),
    meaning:
      'the longest conversation, in tokens, and what memory is set aside for; null: it grows, as far as the model was trained for and memory allows',
  },
  'inference.keepLoadedMinutes': {
    schema: z.literal([0, 5, 15, 30, 60]).nullable().default(15),
    meaning: 'how long a model stays loaded after use: 0, 5, 15, 30 or 60; null keeps it until another is asked for',
  },
  'inference.evictionPolicy': {
    schema: z.enum(['strict', 'flexible']).default('strict'),
    meaning: 'strict: one model is loaded at a time; flexible: as many as fit in memory',
  },
  'inference.concurrentSessions': {
    schema: z.int().nullable().default(null),
    meaning: 'conversations of one model that stay in memory, 1 to 32; null: up to 4, as memory allows',
  },
  'inference.continuousBatching': {
    schema: z.boolean().default(false),
    meaning: 'generate for several requests of one model at once, not one after the other',
  },
  'inference.gpu': {
    schema: z.enum(['auto', 'off']).default('auto'),
    meaning: 'use a supported graphics card where there is one',
  },
} as const;
export type InferenceSettings = SettingsOf<typeof inferenceSettings>;

export const samplingSettings = {
  'sampling.temperature': sampling(z.number().min(0).max(2), 'temperature'),
  'sampling.topP': sampling(z.number().min(0).max(1), 'top-p'),
  'sampling.topK': sampling(z.int().min(0), 'top-k'),
  'sampling.minP': sampling(z.number().min(0).max(1), 'min-p'),
  'sampling.repetitionPenalty': sampling(z.number().positive().max(10), 'repetition penalty'),
  'sampling.maxTokens': sampling(z.int().min(1), 'most tokens of an answer'),
} as const;
export type SamplingSettings = SettingsOf<typeof samplingSettings>;

/** A default for requests that do not say; null leaves it to the model's own file. */
function sampling<Schema extends z.ZodNumber>(schema: Schema, what: string) {
  return {
    schema: schema.nullable().default(null),
    meaning: `${what} where a request says none; null: the model decides`,
  };
}
