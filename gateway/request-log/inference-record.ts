/**
 * What models do for one request, seen by looking on: the model port's own stream, part by part, on its way to the wire
 * codec. Nothing is asked of a model that would not be asked of it without this.
 */
import type {
  LanguageModelV3FinishReason,
  LanguageModelV3GenerateResult,
  LanguageModelV3Usage,
} from '@ai-sdk/provider';
import {
  collect,
  PROVIDER,
  promptCountOf,
  type LanguageModel,
  type ModelCall,
  type ModelStreamPart,
} from '../../core/inference/model-port.ts';
import type { Services } from '../route.ts';
import type { InferenceEntry, RequestFinishReason } from './request-entry.ts';

type Inference = Services['inference'];

/** One call of a model; a request may make several. */
interface CallRecord {
  promptTokens?: number | undefined;
  firstPieceAt?: number;
  endedAt?: number;
  usage?: LanguageModelV3Usage;
  finish?: LanguageModelV3FinishReason['unified'];
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
  /** What the models wrote, in the order they wrote it. */
  text = '';

  constructor(options: InferenceRecordOptions) {
    this.#options = options;
  }

  /** The same inference, looked on at. */
  watch(inference: Inference): Inference {
    return {
      languageModel: async (id) => this.#watchModel(await inference.languageModel(id)),
      countPromptTokens: async (id, call) => {
        const count = await inference.countPromptTokens(id, call);
        this.#model = id;
        return count;
      },
      unload: (id) => inference.unload(id),
      status: () => inference.status(),
    };
  }

  /** @param options.startedAt when the request came, by the same clock */
  entry({ startedAt, isCancelled }: { readonly startedAt: number; readonly isCancelled: boolean }): InferenceEntry {
    const firstPieceAt = this.#calls.find((call) => call.firstPieceAt !== undefined)?.firstPieceAt;
    return {
      model: this.#model,
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

  #watchModel(model: LanguageModel): LanguageModel {
    this.#model = model.modelId;
    const doStream = async (options: ModelCall) => {
      const call = this.#begin();
      const { stream, ...result } = await this.#orFail(model.doStream(options));
      return { ...result, stream: this.#watchStream(call, stream) };
    };
    return {
      specificationVersion: model.specificationVersion,
      provider: model.provider,
      modelId: model.modelId,
      supportedUrls: model.supportedUrls,
      doStream,
      // Our own engine makes a whole answer of its stream anyway, and there its pieces can be timed.
      doGenerate:
        model.provider === PROVIDER
          ? async (options) => collect((await doStream(options)).stream)
          : (options) => this.#watchWhole(model, options),
    };
  }

  async #watchWhole(model: LanguageModel, options: ModelCall): Promise<LanguageModelV3GenerateResult> {
    const call = this.#begin();
    const result = await this.#orFail(model.doGenerate(options));
    call.usage = result.usage;
    call.finish = result.finishReason.unified;
    for (const part of result.content) {
      if (part.type === 'text') this.#keep(part.text);
      if (part.type === 'tool-call') this.#keep(callText(part));
    }
    return result;
  }

  #watchStream(call: CallRecord, stream: ReadableStream<ModelStreamPart>): ReadableStream<ModelStreamPart> {
    const reader = stream.getReader();
    return new ReadableStream<ModelStreamPart>(
      {
        pull: async (controller) => {
          const { done, value } = await this.#orFail(reader.read());
          if (done) return controller.close();
          this.#note(call, value);
          controller.enqueue(value);
        },
        cancel: (reason) => reader.cancel(reason),
      },
      // Reads no further ahead than whoever reads it.
      { highWaterMark: 0 },
    );
  }

  #begin(): CallRecord {
    const call: CallRecord = {};
    this.#calls.push(call);
    return call;
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
      case 'error':
        this.#options.onFailure(part.error);
        break;
      case 'finish':
        call.usage = part.usage;
        call.finish = part.finishReason.unified;
        call.endedAt = this.#options.elapsed();
        break;
      default:
        // Starts, ends and fragments.
        break;
    }
  }

  #keep(text: string): void {
    const room = this.#options.maxTextLength - this.text.length;
    if (room > 0) this.text += text.slice(0, room);
  }

  async #orFail<Result>(result: PromiseLike<Result>): Promise<Result> {
    try {
      return await result;
    } catch (error) {
      this.#options.onFailure(error);
      throw error;
    }
  }
}

function callText({ toolName, input }: { readonly toolName: string; readonly input: string }): string {
  return `\n[calls ${toolName} ${input}]`;
}

/** The port knows more reasons than the log. */
const FINISH_REASONS: Readonly<Record<LanguageModelV3FinishReason['unified'], RequestFinishReason>> = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'stop',
  other: 'stop',
  error: 'error',
};
