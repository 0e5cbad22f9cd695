/**
 * The model port: the one interface between whoever wants text and whoever makes it. It is the AI SDK's language
 * model provider interface, so the local engine and every `@ai-sdk/*` provider are used alike.
 *
 * This file adds the little which that interface leaves open: our provider options, and what our local engine
 * promises beyond it (`tool-input-*` parts stream as the model writes them; `finish.usage` is counted, never
 * estimated).
 */
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Content,
  LanguageModelV4GenerateResult,
  LanguageModelV4StreamPart,
  LanguageModelV4StreamResult,
  LanguageModelV4ToolCall,
} from '@ai-sdk/provider';
import * as z from 'zod';
import { ServiceError } from '../errors.ts';
import { isRecord } from '../json.ts';

export type LanguageModel = Omit<LanguageModelV4, 'doStream'> & {
  doStream(call: ModelCall): PromiseLike<StreamedAnswer>;
};
export type ModelWarnings = LanguageModelV4GenerateResult['warnings'];
/** An answer that comes in parts; with the warnings of its first one, where that is there already. */
export type StreamedAnswer = LanguageModelV4StreamResult & { readonly warnings?: ModelWarnings | undefined };
export type ModelCall = LanguageModelV4CallOptions;
export type ModelStreamPart = LanguageModelV4StreamPart;
/** An answer that comes whole. */
export type ModelAnswer = LanguageModelV4GenerateResult;

/** The same model, its calls answered in another way. A provider's model is a class, of which a spread would lose parts. */
export function withCalls(
  model: LanguageModel,
  calls: Partial<Pick<LanguageModel, 'doStream' | 'doGenerate'>>,
): LanguageModel {
  return {
    specificationVersion: model.specificationVersion,
    provider: model.provider,
    modelId: model.modelId,
    supportedUrls: model.supportedUrls,
    doStream: (call) => model.doStream(call),
    doGenerate: (call) => model.doGenerate(call),
    ...calls,
  };
}

/** The key of our options in `ModelCall.providerOptions` and of our facts in `providerMetadata`. */
export const PROVIDER = 'postern';

/** Sampling that the AI SDK has no field for, and switches that only some engines understand. */
export const modelOptionsSchema = z.strictObject({
  /** Drops tokens less likely than this share of the likeliest one; 0 is off. */
  minP: z.number().min(0).max(1).optional(),
  /** Divides the likelihood of recently used tokens; 1 is off. */
  repetitionPenalty: z.number().positive().max(10).optional(),
  /** How many of the last tokens count as recently used; -1 is all of them, and the engine decides where nothing is said. */
  penaltyWindow: z.int().min(-1).optional(),
  /** The most tokens a model may spend on thinking; goes before what `reasoning` makes of an effort. */
  thinkingBudgetTokens: z.int().nonnegative().optional(),
  /** False allows at most one tool call in an answer. */
  parallelToolCalls: z.boolean().optional(),
  /** True refuses a response format whose schema can't be kept whole; otherwise a warning names what isn't held to. */
  strictResponseFormat: z.boolean().optional(),
  /** True continues the prompt's text as it stands, with no chat template around it; the prompt is one user message. */
  raw: z.boolean().optional(),
  /** The conversation may get so long, in tokens: a model that is loaded for less is loaded anew, if it can have more. */
  contextTokens: z.int().positive().optional(),
  /** What the caller's wire style lays down for a request that does not say; the owner and the model go before it. */
  styleDefaults: z
    .strictObject({ temperature: z.number().optional(), maxTokens: z.int().positive().optional() })
    .optional(),
});
export type ModelOptions = z.infer<typeof modelOptionsSchema>;

/** Reads our part of the provider options; options addressed to other providers are not ours to judge. */
export function modelOptionsOf(call: Pick<ModelCall, 'providerOptions'>): ModelOptions {
  return modelOptionsSchema.parse(call.providerOptions?.[PROVIDER] ?? {});
}

/**
 * Our engine has counted the prompt before it answers, and says so in a part that whoever does not care skips. Styles
 * that tell their clients first thing how long the prompt was have it from there.
 */
export function promptCountPart(promptTokens: number): ModelStreamPart {
  return { type: 'raw', rawValue: { promptTokens } };
}

/** @returns undefined for every other part */
export function promptCountOf(part: ModelStreamPart): number | undefined {
  const count = part.type === 'raw' && isRecord(part.rawValue) ? part.rawValue['promptTokens'] : undefined;
  return typeof count === 'number' ? count : undefined;
}

/** What writing an answer took, from its first piece on, in milliseconds; undefined of a model that does not say. */
export function generationMsOf({ providerMetadata }: Pick<ModelAnswer, 'providerMetadata'>): number | undefined {
  const ms = providerMetadata?.[PROVIDER]?.['generationMs'];
  return typeof ms === 'number' ? ms : undefined;
}

/** @param ms what writing it took; see `generationMsOf` */
export function withGenerationMs(answer: ModelAnswer, ms: number): ModelAnswer {
  const { providerMetadata = {} } = answer;
  const ours = { ...providerMetadata[PROVIDER], generationMs: ms };
  return { ...answer, providerMetadata: { ...providerMetadata, [PROVIDER]: ours } };
}

/** What a model writes, as opposed to what is said about it. */
export function isPiece({ type }: ModelStreamPart): boolean {
  return type === 'text-delta' || type === 'reasoning-delta' || type === 'tool-input-start' || type === 'tool-call';
}

/** Reads a stream to its end into the answer it makes up. @throws what the stream ends with instead of `finish` */
export async function collect(stream: ReadableStream<ModelStreamPart>): Promise<ModelAnswer> {
  const add = createCollector();
  for await (const part of stream) {
    if (part.type === 'error') throw part.error;
    const answer = add(part);
    if (answer !== undefined) return answer;
  }
  throw new ServiceError('engine_failed', 'The model stopped before its answer was complete.');
}

/** Takes the parts of one answer, and with the last of them, `finish`, gives the whole of it. */
export function createCollector(): (part: ModelStreamPart) => ModelAnswer | undefined {
  const content: LanguageModelV4Content[] = [];
  let warnings: ModelAnswer['warnings'] = [];
  let call: LanguageModelV4ToolCall | undefined;
  // Blocks of other providers may overlap.
  const growing = new Map<string, { type: 'text' | 'reasoning'; text: string }>();
  return (part) => {
    switch (part.type) {
      case 'stream-start':
        warnings = part.warnings;
        return undefined;
      case 'text-start':
      case 'reasoning-start': {
        const block = { type: part.type === 'text-start' ? ('text' as const) : ('reasoning' as const), text: '' };
        growing.set(part.id, block);
        content.push(block);
        return undefined;
      }
      case 'text-delta':
      case 'reasoning-delta': {
        const block = growing.get(part.id);
        if (block !== undefined) block.text += part.delta;
        return undefined;
      }
      case 'tool-input-start':
        call = { type: 'tool-call', toolCallId: part.id, toolName: part.toolName, input: '' };
        return undefined;
      case 'tool-input-delta':
        if (call !== undefined) call.input += part.delta;
        return undefined;
      case 'tool-call':
        call = undefined;
        content.push(part);
        return undefined;
      case 'finish': {
        const { finishReason, usage, providerMetadata } = part;
        // A call that was cut off: its client gets what a stream would have shown of it.
        if (call !== undefined) content.push(call);
        const more = providerMetadata === undefined ? {} : { providerMetadata };
        return { content, finishReason, usage, warnings, ...more };
      }
      default:
        // Starts, ends and fragments of what arrives whole in another part.
        return undefined;
    }
  };
}
