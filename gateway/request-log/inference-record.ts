/**
 * What models do for one request, seen by looking on, part by part. Nothing is asked of a model that would not be asked
 * of it without this.
 */
import type { LanguageModelV4FinishReason, LanguageModelV4Usage } from '@ai-sdk/provider';
import type { CallOwner } from '../../core/inference/call-owner.ts';
import type { Inference } from '../../core/inference/inference.ts';
import {
  generationMsOf,
  promptCountOf,
  type ModelAnswer,
  type ModelStreamPart,
} from '../../core/inference/model-port.ts';
import { observed, type CallObserver } from '../../core/inference/observed-model.ts';
import type { InferenceEntry, RequestFinishReason } from './request-entry.ts';

/** One call of a model; a request may make several. */
interface CallRecord {
  promptTokens?: number | undefined;
  firstPieceAt?: number;
  endedAt?: number;
  usage?: LanguageModelV4Usage;
  finish?: LanguageModelV4FinishReason['unified'];
}

interface InferenceRecordOptions {
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  /** Characters of the answer that are kept. */
  readonly maxTextLength: number;
  /** Told of a call that failed, as soon as it does. */
  readonly onFailure: (error: unknown) => void;
}

export class InferenceRecord {
  readonly #options: InferenceRecordOptions;
  readonly #calls: CallRecord[] = [];
  #model: string | undefined;
  #requestedModel: string | undefined;
  /** What the models wrote, in the order they wrote it. */
  text = '';

  constructor(options: InferenceRecordOptions) {
    this.#options = options;
  }

  /** The same inference, asked in an owner's name and looked on at. */
  watch(inference: Inference, owner: CallOwner): Inference {
    return {
      ...inference,
      languageModel: async (id) => {
        this.#requestedModel = id;
        const model = await inference.languageModel(id, owner);
        this.#model = model.modelId;
        return observed(model, () => this.#observe());
      },
      countPromptTokens: async (id, call) => {
        this.#requestedModel = id;
        const count = await inference.countPromptTokens(id, call, owner);
        this.#model = id;
        return count;
      },
    };
  }

  /** @param options.startedAt when the request came, by the same clock */
  entry({ startedAt, isCancelled }: { readonly startedAt: number; readonly isCancelled: boolean }): InferenceEntry {
    const firstPieceAt = this.#calls.find((call) => call.firstPieceAt !== undefined)?.firstPieceAt;
    return {
      model: this.#model,
      requestedModel: this.#requestedModel,
      finishReason: this.#finishReason(isCancelled),
      inputTokens: this.#sum((call) => call.usage?.inputTokens.total ?? call.promptTokens),
      cachedTokens: this.#sum((call) => call.usage?.inputTokens.cacheRead),
      outputTokens: this.#sum((call) => call.usage?.outputTokens.total),
      firstTokenMs: firstPieceAt === undefined ? undefined : firstPieceAt - startedAt,
      ...this.#speed(),
    };
  }

  #finishReason(isCancelled: boolean): RequestFinishReason | undefined {
    const last = this.#calls.at(-1);
    if (last === undefined) return undefined;
    if (isCancelled) return 'cancelled';
    return FINISH_REASONS[last.finish ?? 'error'];
  }

  /** Undefined where no call knows. */
  #sum(of: (call: CallRecord) => number | undefined): number | undefined {
    const known = this.#calls.map(of).filter((count) => count !== undefined);
    return known.length === 0 ? undefined : known.reduce((total, count) => total + count, 0);
  }

  /** The first token ends the reading of the prompt; what is written in the time after it are the others. */
  #speed(): Pick<InferenceEntry, 'generationMs' | 'tokensPerSecond'> {
    const timed = this.#calls.flatMap(({ firstPieceAt, endedAt, usage }) => {
      const tokens = (usage?.outputTokens.total ?? 0) - 1;
      return tokens < 1 || firstPieceAt === undefined || endedAt === undefined
        ? []
        : [{ tokens, ms: endedAt - firstPieceAt }];
    });
    const tokens = timed.reduce((total, call) => total + call.tokens, 0);
    const ms = timed.reduce((total, call) => total + call.ms, 0);
    return ms > 0
      ? { generationMs: ms, tokensPerSecond: (tokens * 1000) / ms }
      : { generationMs: undefined, tokensPerSecond: undefined };
  }

  #observe(): CallObserver {
    const call: CallRecord = {};
    this.#calls.push(call);
    return {
      onPart: (part) => this.#note(call, part),
      onAnswer: (answer) => this.#noteAnswer(call, answer),
      onFailure: this.#options.onFailure,
    };
  }

  #note(call: CallRecord, part: ModelStreamPart): void {
    switch (part.type) {
      case 'raw':
        call.promptTokens = promptCountOf(part) ?? call.promptTokens;
        break;
      case 'text-delta':
      case 'reasoning-delta':
      case 'tool-input-start':
      case 'tool-call':
        call.firstPieceAt ??= this.#options.elapsed();
        if (part.type === 'text-delta') this.#keep(part.delta);
        if (part.type === 'tool-call') this.#keep(callText(part));
        break;
      case 'finish':
        this.#noteEnd(call, part);
        break;
      default:
        // Starts, ends and fragments.
        break;
    }
  }

  #noteAnswer(call: CallRecord, answer: ModelAnswer): void {
    this.#noteEnd(call, answer);
    const generationMs = generationMsOf(answer);
    if (generationMs !== undefined && call.endedAt !== undefined) call.firstPieceAt = call.endedAt - generationMs;
    for (const part of answer.content) {
      if (part.type === 'text') this.#keep(part.text);
      if (part.type === 'tool-call') this.#keep(callText(part));
    }
  }

  #noteEnd(call: CallRecord, { usage, finishReason }: Pick<ModelAnswer, 'usage' | 'finishReason'>): void {
    call.usage = usage;
    call.finish = finishReason.unified;
    call.endedAt = this.#options.elapsed();
  }

  #keep(text: string): void {
    const room = this.#options.maxTextLength - this.text.length;
    if (room > 0) this.text += text.slice(0, room);
  }
}

function callText({ toolName, input }: { readonly toolName: string; readonly input: string }): string {
  return `\n[calls ${toolName} ${input}]`;
}

/** The port knows more reasons than the log. */
const FINISH_REASONS: Readonly<Record<LanguageModelV4FinishReason['unified'], RequestFinishReason>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'stop',
  other: 'stop',
  error: 'error',
  interrupted: 'error',
};
