/**
 * node-llama-cpp behind the model port: loads one GGUF file, then generates for as many calls at once as it has
 * sequences (the parent keeps the queue). Everything that is peculiar to the engine ends in this file and its
 * neighbours.
 */
import { randomInt } from 'node:crypto';
import {
  getLlama,
  InsufficientMemoryError,
  LlamaChat,
  LlamaCompletion,
  LlamaLogLevel,
  resolveChatWrapper,
  type ChatHistoryItem,
  type ChatWrapper,
  type LLamaChatGenerateResponseOptions,
  type Llama,
  type LlamaContext,
  type LlamaGrammar,
  type LlamaText,
  type LlamaChatResponse,
  type LlamaContextSequence,
  type LlamaModel,
  type Token,
} from 'node-llama-cpp';
import type { LanguageModelV4FunctionTool, LanguageModelV4Usage } from '@ai-sdk/provider';
import { ServiceError } from '../../../errors.ts';
import { modelOptionsOf, promptCountPart, PROVIDER, type ModelStreamPart } from '../../model-port.ts';
import { callStarts, chatTemplate, grammarFunctions, isCallStart } from './chat-template.ts';
import { checkGgufHeader, damagedModel } from './gguf-header.ts';
import { checkAnswer } from './answer-check.ts';
import { gapWarnings, responseSchema, type HeldSchema } from './held-schema.ts';
import { withAlternatives } from '../../../json-schema/grammar.ts';
import type { GenerateRequest, LoadedModel, LoadRequest } from './protocol.ts';
import type { CallOwner } from '../../call-owner.ts';
import type { ContextLimit } from '../context-limit.ts';
import { ContextTooShort, promptTooLong } from '../prompt-size.ts';
import { prefill } from './prefill.ts';
import { measurePrompt } from './prompt-measure.ts';
import { ResponseParts } from './response-parts.ts';
import { createSequencePool, type SequencePool } from './sequence-pool.ts';
import { bundleSampling, resolveSampling } from './sampling.ts';
import { hasThinkingSwitch, thinkingBudget } from './thinking-budget.ts';

export interface GenerateOptions {
  /** Ends the generation within a token; the stream then finishes with reason `other`. */
  readonly signal: AbortSignal;
  readonly emit: (part: ModelStreamPart) => void;
}

export interface Engine {
  readonly model: LoadedModel;
  /**
   * Emits `stream-start` once the request is known to be answerable, then the answer, then `finish`.
   * @throws {ServiceError} before anything is emitted: `prompt_too_long`, `unsupported`, `invalid_request`
   */
  generate(request: GenerateRequest, options: GenerateOptions): Promise<void>;
  /** How many tokens the request's prompt would have, its template and tools included. */
  countPromptTokens(request: GenerateRequest, signal: AbortSignal): Promise<number>;
}

/**
 * @param onProgress called again and again while the file is being read
 * @throws {ServiceError} `insufficient_resources`, or `engine_failed` for a file that is no usable model
 */
export async function loadEngine(request: LoadRequest, onProgress: () => void): Promise<Engine> {
  await checkGgufHeader(request.path);
  const llama = await getLlama({
    gpu: request.gpu === 'auto' ? 'auto' : false,
    build: 'never',
    skipDownload: true,
    maxThreads: request.threads,
    // Its messages quote what it was given: file paths, schemas, the grammar of somebody's tools.
    logLevel: LlamaLogLevel.disabled,
  });
  const model = await llama.loadModel({ modelPath: request.path, onLoadProgress: onProgress }).catch(refuseLoad);
  const context = await createContext(model, request).catch(refuseLoad);
  const loaded = new LoadedEngine(llama, model, context, request);
  return {
    model: loaded.describe(),
    generate: (call, options) => loaded.generate(call, options),
    countPromptTokens: async (call, signal) => (await loaded.prepare(call, signal)).prompt.length,
  };
}

/** A cache of the type that was planned with, or half as long where this model can't have one of that type. */
async function createContext(model: LlamaModel, request: LoadRequest): Promise<LlamaContext> {
  const { sequences, threads, cacheType } = request;
  const contextSize = Math.min(request.contextTokens, model.trainContextSize);
  if (cacheType === 'f16') return model.createContext({ sequences, contextSize, threads });
  const quantized = { experimentalKvCacheKeyType: 'Q8_0', experimentalKvCacheValueType: 'Q8_0' } as const;
  return model
    .createContext({ sequences, contextSize, threads, ...quantized })
    .catch(() => model.createContext({ sequences, contextSize: Math.ceil(contextSize / 2), threads }));
}

/** 0 without a supported card. */
export async function freeGpuBytes(): Promise<number> {
  try {
    const llama = await getLlama({ gpu: 'auto', build: 'never', skipDownload: true, logLevel: LlamaLogLevel.disabled });
    const { free, unifiedSize } = await llama.getVramState();
    return Math.max(0, free - unifiedSize);
  } catch {
    return 0;
  }
}

/** What is the same for a conversation and for raw text. */
type RunOptions = ReturnType<typeof samplingOptions> & {
  readonly maxTokens: number;
  readonly customStopTriggers: readonly string[];
  readonly signal: AbortSignal;
  readonly stopOnAbortSignal: boolean;
};

interface Prepared {
  readonly prompt: readonly Token[];
  /** What the answer's text shall keep to. */
  readonly schema?: HeldSchema | undefined;
  /** Generates, and tells why it stopped. */
  run(
    sequence: LlamaContextSequence,
    options: RunOptions,
    parts: ResponseParts,
  ): Promise<LlamaChatResponse['metadata']>;
}

/** Room for an answer that a context is made longer for: where the request does not say, and at the most. */
const ANSWER_TOKENS = 1024;
const MAX_ANSWER_TOKENS = 8192;

interface Conversation {
  readonly sequence: LlamaContextSequence;
  readonly chatWrapper: ChatWrapper;
  readonly history: ChatHistoryItem[];
  readonly request: GenerateRequest;
}

interface AnswerOptions extends GenerateOptions {
  readonly prepared: Prepared;
  readonly sequence: LlamaContextSequence;
}

class LoadedEngine {
  readonly #llama: Llama;
  readonly #model: LlamaModel;
  readonly #context: LlamaContext;
  readonly #pool: SequencePool;
  readonly #load: LoadRequest;
  readonly #family: ChatWrapper;
  /** The same family told to answer without thinking, for those that can be told. */
  readonly #noThinking: ChatWrapper;

  constructor(llama: Llama, model: LlamaModel, context: LlamaContext, load: LoadRequest) {
    this.#llama = llama;
    this.#model = model;
    this.#context = context;
    this.#pool = createSequencePool(Array.from({ length: context.totalSequences }, () => context.getSequence()));
    this.#load = load;
    this.#family = resolveChatWrapper(model);
    // What a model was never taught only confuses it.
    this.#noThinking = hasThinkingSwitch(model.fileInfo.metadata)
      ? resolveChatWrapper(model, { customWrapperSettings: { qwen: { thoughts: 'discourage' } } })
      : this.#family;
  }

  describe(): LoadedModel {
    return {
      contextTokens: this.#context.contextSize,
      limit: this.#limit(),
      sequences: this.#context.totalSequences,
      trainedContextTokens: this.#model.trainContextSize,
    };
  }

  async generate(request: GenerateRequest, options: GenerateOptions): Promise<void> {
    const prepared = await this.prepare(request, options.signal);
    this.#assertFits(prepared.prompt.length, request);
    const sequence = await this.#pool.acquire(prepared.prompt, request.owner);
    try {
      await this.#answer(request, { ...options, prepared, sequence });
    } finally {
      this.#pool.release(sequence);
    }
  }

  /** The service plans; what the engine made of it goes before that. For a guest no model is loaded anew. */
  #limit(owner?: CallOwner): ContextLimit {
    const { tokens, by } = this.#load.limit;
    const { contextSize } = this.#context;
    const most = Math.max(contextSize, Math.min(tokens, this.#model.trainContextSize));
    if (owner?.isGuest === true && contextSize < most) return { tokens: contextSize, by: 'guest' };
    return { tokens: most, by: most < tokens ? 'training' : by };
  }

  /** @throws {ServiceError} `prompt_too_long` @throws {ContextTooShort} */
  #assertFits(promptTokens: number, request: GenerateRequest): void {
    const { contextSize } = this.#context;
    const limit = this.#limit(request.owner);
    if (limit.tokens - promptTokens < 2) throw promptTooLong(`has ${promptTokens} tokens`, limit, promptTokens);
    const answerTokens = Math.min(this.#wantedTokens(request) ?? ANSWER_TOKENS, MAX_ANSWER_TOKENS);
    const neededTokens = promptTokens + answerTokens;
    if (contextSize < limit.tokens && contextSize < neededTokens) throw new ContextTooShort(neededTokens);
  }

  async #answer(request: GenerateRequest, { prepared, sequence, signal, emit }: AnswerOptions): Promise<void> {
    const promptTokens = prepared.prompt.length;
    const room = sequence.contextSize - promptTokens - 1;
    emit({ type: 'stream-start', warnings: gapWarnings(prepared.schema) });
    emit(promptCountPart(promptTokens));
    const parts = new ResponseParts(emit);
    const before = sequence.tokenMeter.getState();
    const options = {
      ...samplingOptions(request, this.#load, this.#model),
      maxTokens: Math.min(this.#wantedTokens(request) ?? room, room),
      customStopTriggers: request.stopSequences ?? [],
      signal,
      stopOnAbortSignal: true,
    };
    const metadata = await prefill(sequence, prepared.prompt, signal)
      .then(() => prepared.run(sequence, options, parts))
      .catch((error: unknown) => {
        // An abort before the first token is reported as an error.
        if (signal.aborted) return undefined;
        throw error;
      });
    parts.end();
    if (prepared.schema !== undefined && !parts.hasCalls && ENDED.has(metadata?.stopReason))
      checkAnswer(parts.text, prepared.schema);
    const spent = sequence.tokenMeter.diff(before);
    emit(finishPart(metadata, usage({ promptTokens, spent, reasoningTokens: parts.reasoningTokens })));
  }

  #wantedTokens(request: GenerateRequest): number | undefined {
    const styleDefault = modelOptionsOf(request).styleDefaults?.maxTokens;
    return request.maxOutputTokens ?? this.#load.settings.maxTokens ?? styleDefault;
  }

  /** Everything that can be refused is refused here, before anything is sent. @throws the signal's reason */
  async prepare(request: GenerateRequest, signal: AbortSignal): Promise<Prepared> {
    const { input } = request;
    await measurePrompt(request, {
      countTokens: (text) => this.#model.tokenize(text).length,
      limit: this.#limit(request.owner),
      signal,
    });
    return 'rawText' in input ? this.#prepareRaw(input.rawText) : this.#prepareChat(request, input.history);
  }

  #prepareRaw(text: string): Prepared {
    // Text that a client laid out by a template of its own holds that template's special tokens.
    const tokens = this.#model.tokenize(text, true);
    return {
      prompt: tokens,
      run: async (sequence, options, parts) => {
        const completion = new LlamaCompletion({ contextSequence: sequence });
        const { metadata } = await completion
          .generateCompletionWithMeta(tokens, {
            ...options,
            disableContextShift: true,
            onTextChunk: (chunk) => parts.write('text', chunk),
          })
          .finally(() => completion.dispose({ disposeSequence: false }));
        return metadata;
      },
    };
  }

  async #prepareChat(request: GenerateRequest, history: ChatHistoryItem[]): Promise<Prepared> {
    const tools = callableTools(request);
    const mustCall = request.toolChoice?.type === 'required' || request.toolChoice?.type === 'tool';
    const family = request.reasoning === 'none' ? this.#noThinking : this.#family;
    const template = chatTemplate(family, { tools, mustCall });
    // What has to be a call is no answer.
    const schema = mustCall ? undefined : responseSchema(request);
    const starts = schema === undefined || tools.length === 0 ? [] : callStarts(family);
    const grammar = await this.#grammar(schema, starts);
    return {
      prompt: this.#tokenize(template, history, tools),
      schema,
      run: async (sequence, options, parts) => {
        const generate = (chatWrapper: ChatWrapper, more: Partial<LLamaChatGenerateResponseOptions>) =>
          this.#converse({ sequence, chatWrapper, history, request }, { ...options, ...more }, parts);
        const calling = toolOptions(request, tools, parts);
        if (grammar === undefined) return generate(template, calling);
        const stops = [...options.customStopTriggers, ...starts];
        const before = sequence.tokenMeter.getState();
        const answer = await generate(template, { grammar, customStopTriggers: stops });
        if (!isCallStart(answer, options.customStopTriggers)) return answer;
        // It began a call in place of the answer: from here on it is held to the tools.
        const left = options.maxTokens - sequence.tokenMeter.diff(before).usedOutputTokens;
        return generate(chatTemplate(family, { tools, mustCall: true }), { ...calling, maxTokens: Math.max(1, left) });
      },
    };
  }

  async #converse(
    { sequence, chatWrapper, history, request }: Conversation,
    options: LLamaChatGenerateResponseOptions,
    parts: ResponseParts,
  ): Promise<LlamaChatResponse['metadata']> {
    const chat = new LlamaChat({ contextSequence: sequence, chatWrapper });
    const { metadata } = await chat
      .generateResponse(history, {
        ...options,
        budgets: { thoughtTokens: thinkingBudget(request) },
        contextShift: { strategy: refuseShift },
        onResponseChunk: ({ type, text, tokens }) =>
          parts.write(type === 'segment' ? 'reasoning' : 'text', text, tokens.length),
      })
      .finally(() => chat.dispose());
    return metadata;
  }

  #tokenize(
    template: ChatWrapper,
    history: readonly ChatHistoryItem[],
    tools: readonly LanguageModelV4FunctionTool[],
  ): readonly Token[] {
    const { contextText } = template.generateContextState({
      chatHistory: history.at(-1)?.type === 'model' ? history : [...history, { type: 'model', response: [] }],
      ...(tools.length === 0 ? {} : { availableFunctions: grammarFunctions(tools) }),
    });
    return contextText.tokenize(this.#model.tokenizer);
  }

  /** @param starts what a call begins with, which may stand in place of the answer */
  async #grammar(held: HeldSchema | undefined, starts: readonly LlamaText[]): Promise<LlamaGrammar | undefined> {
    if (held === undefined) return undefined;
    const { tokenizer } = this.#model;
    const texts = starts.map((start) => this.#model.detokenize(start.tokenize(tokenizer), true));
    return this.#llama.createGrammar({ grammar: withAlternatives(held.gbnf, texts) }).catch(refuseSchema);
  }
}

function toolOptions(request: GenerateRequest, tools: readonly LanguageModelV4FunctionTool[], parts: ResponseParts) {
  if (tools.length === 0) return {};
  return {
    functions: grammarFunctions(tools),
    ...(isOneCall(request) ? { maxParallelFunctionCalls: 1 } : {}),
    onFunctionCallParamsChunk: (chunk: { functionName: string; paramsChunk: string }) =>
      parts.writeCall(chunk.functionName, chunk.paramsChunk),
    onFunctionCall: (call: { functionName: string }) => parts.endCall(call.functionName),
  } satisfies Partial<LLamaChatGenerateResponseOptions>;
}

/** Whoever names a tool wants it called, once. */
function isOneCall(request: GenerateRequest): boolean {
  return modelOptionsOf(request).parallelToolCalls === false || request.toolChoice?.type === 'tool';
}

/** How the engine draws tokens for this request. */
function samplingOptions(request: GenerateRequest, load: LoadRequest, model: LlamaModel) {
  const bundle = { ...load.bundle, ...bundleSampling(model.fileInfo.metadata) };
  const { repetitionPenalty, ...sampling } = resolveSampling(request, load.settings, bundle);
  return {
    ...sampling,
    seed: request.seed ?? randomInt(2 ** 31),
    repeatPenalty: {
      ...penaltyWindow(request, load.contextTokens),
      penalty: repetitionPenalty,
      frequencyPenalty: request.frequencyPenalty ?? 0,
      presencePenalty: request.presencePenalty ?? 0,
    },
  };
}

/** Which tokens the penalties are about. */
function penaltyWindow(request: GenerateRequest, contextTokens: number): { readonly lastTokens?: number } {
  const { penaltyWindow: asked } = modelOptionsOf(request);
  if (asked === undefined) return {};
  return { lastTokens: asked < 0 ? contextTokens : Math.min(asked, contextTokens) };
}

/** The tools that the model may call now. Tools that only another provider could run are no business of this engine. */
function callableTools({ tools = [], toolChoice }: GenerateRequest): LanguageModelV4FunctionTool[] {
  if (toolChoice?.type === 'none') return [];
  const functions = tools.filter((tool) => tool.type === 'function');
  const named = toolChoice?.type === 'tool' ? functions.filter((tool) => tool.name === toolChoice.toolName) : functions;
  if (named.length === 0 && (toolChoice?.type === 'tool' || toolChoice?.type === 'required')) {
    throw new ServiceError('invalid_request', 'The tool choice names a tool that is not among the tools.', {
      field: 'toolChoice',
    });
  }
  return named;
}

/** The engine would drop the oldest messages here. The room was measured, so this is never reached; if it is, say so. */
function refuseShift(): never {
  throw new ServiceError('engine_failed', 'The context window is full.');
}

function refuseSchema(cause: unknown): never {
  throw new ServiceError('unsupported', 'This model cannot be held to that JSON schema.', {
    field: 'responseFormat',
    cause,
  });
}

function refuseLoad(cause: unknown): never {
  if (cause instanceof InsufficientMemoryError) {
    throw new ServiceError('insufficient_resources', 'There is not enough free memory to load this model.', { cause });
  }
  throw damagedModel(cause);
}

function finishPart(metadata: LlamaChatResponse['metadata'] | undefined, spent: LanguageModelV4Usage): ModelStreamPart {
  const stop = metadata?.stopReason === 'customStopTrigger' ? metadata.customStopTrigger : undefined;
  return {
    type: 'finish',
    usage: spent,
    finishReason: { unified: FINISH_REASONS[metadata?.stopReason ?? 'abort'], raw: metadata?.stopReason },
    ...(stop === undefined ? {} : { providerMetadata: { [PROVIDER]: { stopSequence: stop.join('') } } }),
  };
}

/** Of an answer that its model ended itself. */
const ENDED: ReadonlySet<string | undefined> = new Set(['eogToken', 'stopGenerationTrigger']);

const FINISH_REASONS = {
  eogToken: 'stop',
  stopGenerationTrigger: 'stop',
  customStopTrigger: 'stop',
  functionCalls: 'tool-calls',
  maxTokens: 'length',
  abort: 'other',
} as const satisfies Record<LlamaChatResponse['metadata']['stopReason'], string>;

interface Spent {
  readonly promptTokens: number;
  readonly spent: { readonly usedInputTokens: number; readonly usedOutputTokens: number };
  readonly reasoningTokens: number;
}

/** Counted by the engine: what it did not have to evaluate again of a prompt was still there from an earlier one. */
function usage({ promptTokens, spent, reasoningTokens }: Spent): LanguageModelV4Usage {
  // The engine books the last prompt token as output: evaluating it is what yields the first token of the answer.
  const evaluated = Math.min(promptTokens, spent.usedInputTokens + 1);
  const total = spent.usedOutputTokens;
  return {
    inputTokens: {
      total: promptTokens,
      noCache: evaluated,
      cacheRead: promptTokens - evaluated,
      cacheWrite: undefined,
    },
    outputTokens: { total, text: Math.max(0, total - reasoningTokens), reasoning: reasoningTokens },
  };
}
