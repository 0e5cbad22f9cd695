/**
 * What a gateway and its model runners say to each other over Node's IPC channel, in lists: what is said in one turn of
 * the event loop goes together. Both ends are ours and start from the same build, so there is no version; the runner trusts
 * its parent, and the parent treats a runner that breaks off as dead.
 *
 *     parent                         runner
 *       probe ───────────────────────▶           instead of anything else
 *             ◀─────────────────────── probed
 *       load  ───────────────────────▶
 *             ◀─────────────────────── loaded | load-failed
 *       generate {id} ───────────────▶
 *             ◀─────────────────────── part {id} * | answered {id} | failed {id}
 *       count {id} ──────────────────▶
 *             ◀─────────────────────── counted {id} | failed {id}
 *       abort {id} (any time) ───────▶
 *             ◀─────────────────────── failed {id} | answered {id} | a last part of type `finish` {id}
 */
import type { ChatHistoryItem } from 'node-llama-cpp';
import type { CallOwner } from '../../call-owner.ts';
import type { ModelAnswer, ModelCall, ModelStreamPart } from '../../model-port.ts';
import type { ContextLimit } from '../context-limit.ts';
import type { CacheType } from '../memory-estimate.ts';
import type { CallField, PromptExcess, ServiceErrorCode } from '../../../errors.ts';

export interface LoadRequest {
  readonly path: string;
  /** CPU threads that decode. */
  readonly threads: number;
  /** The tokens of context that each sequence gets; the model's own training length caps it further. */
  readonly contextTokens: number;
  /** What it could be loaded with at the most. */
  readonly limit: ContextLimit;
  readonly cacheType: CacheType;
  /** How many conversations keep their evaluated tokens, and how many may be generated for at once. */
  readonly sequences: number;
  /** `auto` uses a supported graphics card where there is one. */
  readonly gpu: 'auto' | 'off';
  /** The owner's sampling settings. */
  readonly settings: SamplingDefaults;
  /** Sampling that the model's maker recommends; the file's own metadata goes before it. */
  readonly bundle: SamplingDefaults;
}

/** Sampling that holds where a request does not say; absent leaves it to the model's file, then to the engine. */
export interface SamplingDefaults {
  readonly temperature?: number | undefined;
  readonly topP?: number | undefined;
  readonly topK?: number | undefined;
  readonly minP?: number | undefined;
  readonly repetitionPenalty?: number | undefined;
  readonly maxTokens?: number | undefined;
}

/** A model call as it is sent: the prompt already in the engine's own form, the abort signal a message of its own. */
export interface GenerateRequest extends Omit<ModelCall, 'prompt' | 'abortSignal' | 'headers' | 'includeRawChunks'> {
  /** Whose call it is. */
  readonly owner: CallOwner;
  /** A conversation, or text to go on with as it stands. */
  readonly input: { readonly history: ChatHistoryItem[] } | { readonly rawText: string };
}

export interface LoadedModel {
  /** Tokens of context that one conversation may fill as it is loaded. */
  readonly contextTokens: number;
  /** The same if it were loaded with as many as it can be. */
  readonly limit: ContextLimit;
  readonly sequences: number;
  /** Tokens of context that the model was trained for. */
  readonly trainedContextTokens: number;
}

export interface RunnerFailure {
  /** For so many tokens the model has to be loaded with a longer context. */
  readonly neededTokens?: number | undefined;
  readonly code: ServiceErrorCode;
  readonly message: string;
  readonly field?: CallField | undefined;
  readonly excess?: PromptExcess | undefined;
}

export type ToRunner =
  | { readonly type: 'probe' }
  | { readonly type: 'load'; readonly request: LoadRequest }
  /** A `whole` answer is sent at its end, in one message. */
  | { readonly type: 'generate'; readonly id: number; readonly request: GenerateRequest; readonly whole: boolean }
  | { readonly type: 'count'; readonly id: number; readonly request: GenerateRequest }
  | { readonly type: 'abort'; readonly id: number };

export type FromRunner =
  /** Bytes that are free on graphics cards and are not the system's memory by another name. */
  | { readonly type: 'probed'; readonly freeGpuBytes: number }
  | { readonly type: 'loaded'; readonly model: LoadedModel }
  | { readonly type: 'load-failed'; readonly failure: RunnerFailure }
  | { readonly type: 'part'; readonly id: number; readonly part: ModelStreamPart }
  | { readonly type: 'answered'; readonly id: number; readonly answer: ModelAnswer }
  | { readonly type: 'counted'; readonly id: number; readonly promptTokens: number }
  | { readonly type: 'failed'; readonly id: number; readonly failure: RunnerFailure };

/** What a line on the runner's standard error begins with that is its own. The engine's may quote whatever it was given. */
export const RUNNER_SAYS = 'postern:';

/**
 * Small things in large numbers: as JSON they cost half of what cloning them does. A prompt, which may be megabytes, goes
 * the other way as it is.
 */
export function encodeFromRunner(messages: readonly FromRunner[]): string {
  return JSON.stringify(messages);
}

export function decodeFromRunner(text: string): readonly FromRunner[] {
  return JSON.parse(text);
}
