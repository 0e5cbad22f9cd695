/**
 * Inference with local models: which call runs when, on which of the resident models. Calls wait in a line in which
 * callers take turns; one for a model that is not resident has it loaded, when those before it have had theirs.
 */
import { availableParallelism } from 'node:os';
import { ServiceError } from '../../errors.ts';
import { SERVICE, type CallOwner } from '../call-owner.ts';
import { chatHistory, rawText } from './chat-history.ts';
import type { LocalModel } from '../catalog.ts';
import type { Inference, InferenceStatus } from '../inference.ts';
import type { InstalledModels } from './installed-models.ts';
import {
  modelOptionsOf,
  PROVIDER,
  type LanguageModel,
  type ModelAnswer,
  type ModelCall,
  type ModelWarnings,
  type StreamedAnswer,
} from '../model-port.ts';
import { freeGpuBytes } from './gpu-memory.ts';
import { contextFor, contextLimit } from './context-limit.ts';
import { planLoad, type WantedLoad } from './load-plan.ts';
import { ContextTooShort, promptTooLong, refuseEndlessPrompt, estimateTokens } from './prompt-size.ts';
import { NO_ROOM, Residency, type AdmittedCall, type PlannedLoad, type Use, type WantedRoom } from './residency.ts';
import type { GenerateRequest, LoadedModel, LoadRequest, SamplingDefaults } from './runner/protocol.ts';
import { availableMemoryBytes } from '../../system-memory.ts';
import type { MemoryFacts } from './memory-facts.ts';
import { createFairQueue } from './fair-queue.ts';

export interface LocalInferenceOptions {
  readonly models: Pick<InstalledModels, 'resolve'>;
  /** The compiled `runner/main.js`. */
  readonly runnerEntry: URL;
  /** CPU threads that decode; `undefined` leaves one core to everything else. */
  readonly threads?: number | undefined;
  /** The longest conversation, in tokens, where memory allows; undefined: as long as the model was trained for. */
  readonly contextTokens?: number | undefined;
  readonly gpu: 'auto' | 'off';
  readonly sampling: SamplingDefaults;
  /** How long a model stays loaded after its last call; undefined keeps it until another takes its place. */
  readonly keepLoadedMs?: number | undefined;
  /** `strict` keeps one model loaded, `flexible` as many as fit in memory. Default `strict`. */
  readonly eviction?: 'strict' | 'flexible' | undefined;
  /** Conversations of one model that keep their evaluated tokens, 1 to 32; undefined: as many as memory allows, up to 4. */
  readonly concurrentSessions?: number | undefined;
  /** Generates for that many calls of one model at once; else one after the other. */
  readonly continuousBatching?: boolean | undefined;
  /** What a model needs and what there is; tests pass their own. */
  readonly memoryFacts: (model: LocalModel) => Promise<MemoryFacts | undefined>;
  readonly availableMemoryBytes?: () => Promise<number>;
  /** Told in one line when a runner dies that nobody stopped: calls in flight fail, and the log should say why. */
  readonly onRunnerCrash?: (message: string) => void;
}

export interface LocalInference extends Inference {
  /** Ends the runners and refuses every later call. Calls in flight fail with `shutting_down`. */
  close(): Promise<void>;
}

/** Calls that are running or waiting, all together; the next one is refused rather than left to wait for minutes. */
const MAX_CALLS = 64;

/** The built-in model was trained to be read greedily: drawing at random makes it err. */
const BUILT_IN_SAMPLING: SamplingDefaults = { temperature: 0 };

/** Calls that may wait for one model; a further one would wait longer than its client. */
export const MAX_QUEUED = 32;

export function createLocalInference(options: LocalInferenceOptions): LocalInference {
  const local = new Local(options);
  const { models } = options;
  /** A model whose file was removed is still loaded. */
  const installedOrLoaded = async (id: string): Promise<LocalModel> => {
    try {
      return await models.resolve(id);
    } catch (error) {
      const loaded = local.status().residents.find((resident) => resident.id === id);
      if (loaded === undefined) throw error;
      return loaded.model;
    }
  };
  return {
    languageModel: async (id, owner) => local.languageModel(await models.resolve(id), owner),
    countPromptTokens: async (id, call, owner) => local.countPromptTokens(await models.resolve(id), call, owner),
    load: async (id) => local.load(await models.resolve(id)),
    contextLimit: (model) => local.contextLimit(model),
    unload: async (id) => local.unload(await installedOrLoaded(id)),
    status: () => local.status(),
    close: () => local.close(),
  };
}

interface CallCount {
  running: number;
  queued: number;
}

interface WaitingCall extends AdmittedCall {
  readonly isGuest: boolean;
  readonly roughTokens: number;
  start(use: Use): void;
  fail(error: unknown): void;
}

interface Entry {
  readonly owner?: CallOwner | undefined;
  readonly generates: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Of context, without which the call fails. */
  readonly neededTokens?: number;
  /** Of context, which would do for the call as far as that can be told before its tokens are counted. */
  readonly roughTokens?: number;
}

/** How long what was measured is told again, while no model is loaded. */
const ROOM_FRESH_MS = 60_000;

/** Where texts are longer, their tokens are counted first. */
const MAX_ROUGH_TOKENS = 131_072;

class Local {
  readonly #line = createFairQueue<WaitingCall>();
  readonly #inflight = new Map<string, CallCount>();
  readonly #closing = new AbortController();
  readonly #residency: Residency;
  readonly #options: LocalInferenceOptions;
  /** How much context models turned out to need, by path: they begin with as much the next time. */
  readonly #grown = new Map<string, number>();
  /** What there was when no model was loaded, which tells best how much a model can have. */
  #room: { readonly bytes: number; readonly atMs: number } | undefined;

  constructor(options: LocalInferenceOptions) {
    this.#options = options;
    this.#residency = new Residency({
      eviction: options.eviction ?? 'strict',
      keepLoadedMs: options.keepLoadedMs,
      batching: options.continuousBatching ?? false,
      runnerEntry: options.runnerEntry,
      plan: (model, wanted) => planFor(model, options, wanted),
      availableMemoryBytes: () => this.#measureRoom(),
      loadRequest: (model, plan) => loadRequest(model, plan, options),
      onRunnerCrash: (message) => options.onRunnerCrash?.(message),
      onChange: () => this.#startWhatCan(),
      onLoadFailed: (model, error) => this.#failAll(model, error),
      closing: this.#closing.signal,
    });
  }

  languageModel(model: LocalModel, owner: CallOwner | undefined): LanguageModel {
    return {
      specificationVersion: 'v4',
      provider: PROVIDER,
      modelId: model.id,
      supportedUrls: {},
      doStream: (call) => this.#stream(model, call, owner),
      doGenerate: (call) => this.#generate(model, call, owner),
    };
  }

  async countPromptTokens(model: LocalModel, call: ModelCall, owner: CallOwner | undefined): Promise<number> {
    const request = generateRequest(call, owner);
    const signal = call.abortSignal;
    const use = await this.#enterWith(request, model, { owner, generates: false, signal });
    return use.runner.countPromptTokens(request, signal).finally(() => use.leave());
  }

  async load(model: LocalModel): Promise<void> {
    const use = await this.#enter(model, { generates: false });
    use.leave();
  }

  unload(model: LocalModel): Promise<void> {
    return this.#residency.unload(model);
  }

  async contextLimit(model: LocalModel): Promise<number | undefined> {
    const facts = await this.#options.memoryFacts(model);
    if (facts === undefined) return undefined;
    const resident = this.#residency.list().find(({ id }) => id === model.id);
    if (resident !== undefined) return resident.limitTokens;
    const isStale = this.#residency.list().length === 0 && performance.now() - (this.#room?.atMs ?? 0) > ROOM_FRESH_MS;
    const availableBytes = isStale ? await this.#measureRoom() : (this.#room?.bytes ?? (await this.#measureRoom()));
    return contextLimit(facts, { setting: this.#options.contextTokens, availableBytes })?.tokens;
  }

  async #measureRoom(): Promise<number> {
    const measure = this.#options.availableMemoryBytes ?? (() => availableMemory(this.#options));
    const isEmpty = this.#residency.list().length === 0;
    const bytes = await measure();
    if (isEmpty) this.#room = { bytes, atMs: performance.now() };
    return bytes;
  }

  status(): InferenceStatus {
    return {
      residents: this.#residency.list(),
      inflight: new Map([...this.#inflight].filter(([, count]) => count.running + count.queued > 0)),
      maxCalls: MAX_CALLS,
      runnerCrashes: this.#residency.runnerCrashes,
    };
  }

  async close(): Promise<void> {
    const reason = new ServiceError('shutting_down', 'The service is shutting down.');
    this.#closing.abort(reason);
    for (const call of this.#line.inTurn()) {
      this.#line.remove(call);
      call.fail(reason);
    }
    await this.#residency.close(reason);
  }

  async #stream(model: LocalModel, call: ModelCall, owner: CallOwner | undefined): Promise<StreamedAnswer> {
    const signal = call.abortSignal;
    let warnings: ModelWarnings = [];
    const onWarnings = (said: ModelWarnings): void => void (warnings = said);
    const stream = await this.#answer(model, { call, owner }, (request, use) =>
      use.runner.stream(request, { signal, onSettled: () => use.leave(), onWarnings }),
    );
    return { stream, warnings };
  }

  #generate(model: LocalModel, call: ModelCall, owner: CallOwner | undefined): Promise<ModelAnswer> {
    const signal = call.abortSignal;
    return this.#answer(model, { call, owner }, (request, use) =>
      use.runner.generate(request, { signal, onSettled: () => use.leave() }),
    );
  }

  /** Has the model loaded with a longer context where the call turns out to need one. */
  async #answer<Result>(
    model: LocalModel,
    { call, owner }: { readonly call: ModelCall; readonly owner: CallOwner | undefined },
    run: (request: GenerateRequest, use: Use) => Promise<Result>,
  ): Promise<Result> {
    const request = generateRequest(call, owner);
    const entry = { owner, generates: true, signal: call.abortSignal };
    let neededTokens = modelOptionsOf(call).contextTokens ?? 0;
    for (;;) {
      const use = await this.#enterWith(request, model, { ...entry, neededTokens });
      try {
        return await run(request, use);
      } catch (error) {
        if (!(error instanceof ContextTooShort)) throw error;
        if (error.neededTokens <= neededTokens) throw triedInVain(error, use.runner.model);
        ({ neededTokens } = error);
      }
    }
  }

  /** Only a loaded model tells how much fits into it. @throws {ServiceError} `prompt_too_long` */
  async #enterWith(request: GenerateRequest, model: LocalModel, entry: Entry): Promise<Use> {
    const use = await this.#enter(model, { ...entry, roughTokens: estimateTokens(request, MAX_ROUGH_TOKENS) });
    try {
      refuseEndlessPrompt(request, use.runner.model);
      return use;
    } catch (error) {
      use.leave();
      throw error;
    }
  }

  /** Waits for this call's turn, and for its model to be loaded. */
  async #enter(model: LocalModel, entry: Entry): Promise<Use> {
    const { owner = SERVICE, signal, generates } = entry;
    const { isGuest } = owner;
    // What others use is not loaded anew for a guest, nor with more.
    const { neededTokens = 0, roughTokens = 0 } = isGuest ? {} : entry;
    this.#closing.signal.throwIfAborted();
    signal?.throwIfAborted();
    const count = this.#inflight.get(model.id) ?? { running: 0, queued: 0 };
    this.#makePlace(owner, model);
    this.#inflight.set(model.id, count);
    count.queued += 1;
    const use = await this.#turn(owner, { model, generates, isGuest, neededTokens, roughTokens }, signal).finally(
      () => (count.queued -= 1),
    );
    count.running += 1;
    return {
      runner: use.runner,
      leave: () => {
        count.running -= 1;
        use.leave();
      },
    };
  }

  /**
   * Whoever has few calls waiting is not refused because others have many: one of those is.
   * @throws {ServiceError} `overloaded`
   */
  #makePlace(owner: CallOwner, model: LocalModel): void {
    const isForModel = (call: WaitingCall): boolean => call.model.path === model.path;
    if (this.#line.inTurn().filter(isForModel).length >= MAX_QUEUED) this.#refuseOne(owner, isForModel, queueIsFull());
    const running = [...this.#inflight.values()].reduce((sum, count) => sum + count.running, 0);
    if (this.#line.size + running >= MAX_CALLS) this.#refuseOne(owner, () => true, serviceIsFull());
  }

  #refuseOne(owner: CallOwner, matches: (call: WaitingCall) => boolean, refusal: ServiceError): void {
    const excess = this.#line.findExcess(owner, matches);
    if (excess === undefined) throw refusal;
    this.#giveUp(excess, refusal);
  }

  #turn(owner: CallOwner, wanted: Omit<WaitingCall, 'start' | 'fail'>, signal?: AbortSignal): Promise<Use> {
    return new Promise((resolve, reject) => {
      const settle = (): void => signal?.removeEventListener('abort', giveUp);
      const call: WaitingCall = {
        ...wanted,
        start: (use) => {
          settle();
          resolve(use);
        },
        fail: (error) => {
          settle();
          reject(error);
        },
      };
      const giveUp = (): void => this.#giveUp(call, signal?.reason);
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#line.add(owner, call);
      this.#startWhatCan();
    });
  }

  /** Lets in whoever can start now, in turn; a call whose model is absent has it loaded, after those before it. */
  #startWhatCan(): void {
    const ahead: WaitingCall[] = [];
    for (const call of this.#line.inTurn()) {
      const admission = this.#residency.admit(call);
      if (admission === 'absent') this.#load(call, new Set(ahead));
      if (admission === 'absent' || admission === 'busy') ahead.push(call);
      else {
        this.#line.remove(call);
        call.start(admission);
      }
    }
  }

  #load({ model, isGuest, neededTokens, roughTokens }: WaitingCall, ahead: ReadonlySet<unknown>): void {
    const before = this.#grown.get(model.path) ?? 0;
    const tokens = Math.max(neededTokens, roughTokens, before);
    if (neededTokens > before) this.#grown.set(model.path, neededTokens);
    this.#residency.load(model, { ahead, mayUnload: !isGuest, tokens });
  }

  #giveUp(call: WaitingCall, reason: unknown): void {
    this.#line.remove(call);
    call.fail(reason);
    const others = this.#line.inTurn();
    if (others.every(({ model }) => model.path !== call.model.path)) this.#residency.abandon(call.model);
    this.#startWhatCan();
  }

  #failAll(model: LocalModel, error: unknown): void {
    // Whoever is no guest and asked meanwhile has it tried again.
    const failed = (call: WaitingCall): boolean =>
      call.model.path === model.path && (error !== NO_ROOM || call.isGuest);
    for (const call of this.#line.inTurn().filter(failed)) {
      this.#line.remove(call);
      call.fail(error);
    }
  }
}

/** The numbers are the limits, which everybody may know; how many of the calls are whose nobody is told. */
const serviceIsFull = (): ServiceError =>
  new ServiceError('overloaded', `${MAX_CALLS} requests are running or waiting already. Try again in a moment.`);
const queueIsFull = (): ServiceError =>
  new ServiceError('overloaded', `${MAX_QUEUED} requests are waiting for this model already. Try again in a moment.`);

/** @throws {ServiceError} `unsupported` for what can't be said to this engine at all */
function generateRequest(call: ModelCall, owner = SERVICE): GenerateRequest {
  const { abortSignal: _, headers: __, prompt, ...rest } = call;
  return {
    ...rest,
    owner,
    input: modelOptionsOf(call).raw === true ? { rawText: rawText(prompt) } : { history: chatHistory(prompt) },
  };
}

/** Conversations that keep their evaluated tokens, where nobody says otherwise and memory allows. */
const AUTOMATIC_SESSIONS = 4;
const MAX_SESSIONS = 32;

function wantedSequences({ concurrentSessions }: LocalInferenceOptions): Pick<WantedLoad, 'sequences' | 'isAutomatic'> {
  if (concurrentSessions === undefined) return { sequences: AUTOMATIC_SESSIONS, isAutomatic: true };
  return { sequences: Math.min(MAX_SESSIONS, Math.max(1, concurrentSessions)), isAutomatic: false };
}

async function availableMemory({ gpu, runnerEntry }: LocalInferenceOptions): Promise<number> {
  const [system, card] = await Promise.all([availableMemoryBytes(), gpu === 'auto' ? freeGpuBytes(runnerEntry) : 0]);
  return system + card;
}

/** A file that says nothing of itself is left to the runner, which refuses it in words of its own. */
async function planFor(
  model: LocalModel,
  options: LocalInferenceOptions,
  { availableBytes, tokens }: WantedRoom,
): Promise<PlannedLoad | undefined> {
  const { contextTokens: setting } = options;
  const facts = await options.memoryFacts(model);
  const limit = contextLimit(facts, { setting, availableBytes });
  if (limit === undefined) return undefined;
  const longest = Math.min(setting ?? contextFor(tokens), facts?.trainedContextTokens ?? Infinity);
  const contextTokens = Math.min(longest, limit.tokens);
  const wanted = { contextTokens, ...wantedSequences(options) };
  if (facts === undefined) {
    return { ...wanted, limit, cacheType: 'f16', memoryBytes: model.sizeBytes, isReduced: false };
  }
  const plan = planLoad(facts, wanted, availableBytes);
  return plan && { ...plan, limit, isReduced: plan.contextTokens < longest };
}

/** A model that was to have room, and was loaded anew for that, has none. */
function triedInVain({ neededTokens }: ContextTooShort, { contextTokens }: LoadedModel): ServiceError {
  return promptTooLong(`needs ${neededTokens} tokens with its answer`, { tokens: contextTokens, by: 'memory' });
}

function loadRequest(model: LocalModel, plan: PlannedLoad, options: LocalInferenceOptions): LoadRequest {
  return {
    path: model.path,
    threads: options.threads ?? Math.max(1, availableParallelism() - 1),
    contextTokens: plan.contextTokens,
    limit: plan.limit,
    cacheType: plan.cacheType,
    sequences: plan.sequences,
    gpu: options.gpu,
    settings: options.sampling,
    bundle: model.isBuiltIn ? BUILT_IN_SAMPLING : {},
  };
}
