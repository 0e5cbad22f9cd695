/**
 * Inference with local models: at most one of them is resident, in a runner process of its own, and answers one call
 * at a time; further calls wait in the order of their arrival. A call for another model waits for its turn and then
 * replaces the resident one.
 */
import { availableParallelism } from 'node:os';
import { ServiceError } from '../errors.ts';
import { chatHistory, rawText } from './chat-history.ts';
import type { InstalledModel, ModelCatalog } from './model-catalog.ts';
import {
  collect,
  modelOptionsOf,
  PROVIDER,
  type LanguageModel,
  type ModelCall,
  type ModelStreamPart,
} from './model-port.ts';
import { startRunner, type Runner } from './runner-process.ts';
import type { GenerateRequest, LoadRequest, SamplingDefaults } from './runner/protocol.ts';
import { createTurnstile } from './turnstile.ts';

export interface LocalInferenceOptions {
  readonly catalog: ModelCatalog;
  /** The compiled `runner/main.js`. */
  readonly runnerEntry: URL;
  /** CPU threads that decode; `undefined` leaves one core to everything else. */
  readonly threads?: number | undefined;
  readonly contextTokens: number;
  readonly gpu: 'auto' | 'off';
  readonly sampling: SamplingDefaults;
  /** How long a model stays loaded after its last call; undefined keeps it until another takes its place. */
  readonly keepLoadedMs?: number | undefined;
  /** Told in one line when a runner dies that nobody stopped: calls in flight fail, and the log should say why. */
  readonly onRunnerDeath?: (message: string) => void;
}

export interface LocalInference {
  /** @throws {ServiceError} `model_not_found` */
  languageModel(id: string): Promise<LanguageModel>;
  /**
   * How many tokens the model would read for this call. Loads the model if need be, and waits for its turn.
   * @throws {ServiceError} `model_not_found`, and what the model refuses
   */
  countPromptTokens(id: string, call: ModelCall): Promise<number>;
  /** Gives a model's memory back, once the calls before this one are done. A model that is not resident has none. */
  unload(id: string): Promise<void>;
  status(): InferenceStatus;
  /** Ends the runner and refuses every later call. Calls in flight fail with `shutting_down`. */
  close(): Promise<void>;
}

export interface InferenceStatus {
  /** Loaded now, the one used last first. */
  readonly residents: readonly ResidentModel[];
  /** Calls by model id. */
  readonly inflight: ReadonlyMap<string, { readonly running: number; readonly queued: number }>;
  /** Runners that ended without having been told to, since the service started. */
  readonly runnerDeaths: number;
}

export interface ResidentModel {
  /** How long it stays if nobody calls now; undefined: until another is asked for. */
  readonly unloadsInMs: number | undefined;
  readonly id: string;
  readonly pid: number;
  readonly contextTokens: number;
}

/** Calls that are running or waiting, all together; the next one is refused rather than left to wait for minutes. */
export const MAX_CALLS = 64;

/** The built-in model was trained to be read greedily: drawing at random makes it err. */
const BUILT_IN_SAMPLING: SamplingDefaults = { temperature: 0 };

export function createLocalInference(options: LocalInferenceOptions): LocalInference {
  const local = new Local(options);
  return {
    languageModel: async (id) => local.languageModel(await options.catalog.resolve(id)),
    countPromptTokens: async (id, call) => local.countPromptTokens(await options.catalog.resolve(id), call),
    unload: async (id) => local.unload(await options.catalog.resolve(id)),
    status: () => local.status(),
    close: () => local.close(),
  };
}

interface CallCount {
  running: number;
  queued: number;
}

class Local {
  readonly #options: LocalInferenceOptions;
  readonly #turnstile = createTurnstile();
  readonly #inflight = new Map<string, CallCount>();
  readonly #closing = new AbortController();
  #idle: NodeJS.Timeout | undefined;
  /** When the last call ended, by `performance.now()`; undefined while one runs. */
  #idleSinceMs: number | undefined;
  #runnerDeaths = 0;
  #resident: { readonly model: InstalledModel; readonly runner: Runner } | undefined;

  constructor(options: LocalInferenceOptions) {
    this.#options = options;
  }

  languageModel(model: InstalledModel): LanguageModel {
    return {
      specificationVersion: 'v3',
      provider: PROVIDER,
      modelId: model.id,
      supportedUrls: {},
      doStream: async (call) => ({ stream: await this.#stream(model, call) }),
      doGenerate: async (call) => collect(await this.#stream(model, call)),
    };
  }

  async countPromptTokens(model: InstalledModel, call: ModelCall): Promise<number> {
    const request = generateRequest(call);
    const leave = await this.#enter(model.id, this.#signalOf(call));
    try {
      return await (await this.#runnerOf(model)).countPromptTokens(request);
    } finally {
      leave();
    }
  }

  async unload(model: InstalledModel): Promise<void> {
    const leave = await this.#enter(model.id, this.#closing.signal);
    try {
      if (this.#resident?.model.path === model.path) await this.#resident.runner.stop();
    } finally {
      leave();
    }
  }

  status(): InferenceStatus {
    const resident = this.#resident;
    return {
      residents:
        resident?.runner.isAlive() === true
          ? [{ ...describe(resident.model, resident.runner), unloadsInMs: this.#unloadsInMs() }]
          : [],
      inflight: new Map([...this.#inflight].filter(([, count]) => count.running + count.queued > 0)),
      runnerDeaths: this.#runnerDeaths,
    };
  }

  async close(): Promise<void> {
    this.#stopIdling();
    this.#closing.abort(new ServiceError('shutting_down', 'The service is shutting down.'));
    await this.#resident?.runner.stop();
  }

  async #stream(model: InstalledModel, call: ModelCall): Promise<ReadableStream<ModelStreamPart>> {
    const request = generateRequest(call);
    const signal = this.#signalOf(call);
    const leave = await this.#enter(model.id, signal);
    const runner = await this.#runnerOf(model).catch((error: unknown) => {
      leave();
      throw error;
    });
    return runner.stream(request, { signal, onSettled: leave });
  }

  #signalOf({ abortSignal }: ModelCall): AbortSignal {
    return abortSignal === undefined ? this.#closing.signal : AbortSignal.any([this.#closing.signal, abortSignal]);
  }

  /** Waits for this call's turn. @returns what to do when the call is over */
  async #enter(modelId: string, signal: AbortSignal): Promise<() => void> {
    if (total(this.#inflight) >= MAX_CALLS) {
      throw new ServiceError(
        'overloaded',
        `${MAX_CALLS} requests are running or waiting already. Try again in a moment.`,
      );
    }
    this.#stopIdling();
    const count = this.#inflight.get(modelId) ?? { running: 0, queued: 0 };
    this.#inflight.set(modelId, count);
    count.queued += 1;
    const release = await this.#turnstile.enter(signal).finally(() => (count.queued -= 1));
    count.running += 1;
    return () => {
      count.running -= 1;
      release();
      this.#startIdling();
    };
  }

  /** Nobody may call for a long time now; what a model takes is gigabytes. */
  #startIdling(): void {
    const { keepLoadedMs } = this.#options;
    this.#stopIdling();
    if (keepLoadedMs === undefined || this.#closing.signal.aborted || total(this.#inflight) > 0) return;
    const model = this.#resident?.runner.isAlive() === true ? this.#resident.model : undefined;
    if (model === undefined) return;
    this.#idleSinceMs = performance.now();
    // Refused only by a service that is closing, which unloads everything.
    this.#idle = setTimeout(() => void this.unload(model).catch(() => undefined), keepLoadedMs).unref();
  }

  #stopIdling(): void {
    clearTimeout(this.#idle);
    this.#idleSinceMs = undefined;
  }

  #unloadsInMs(): number | undefined {
    const { keepLoadedMs } = this.#options;
    if (keepLoadedMs === undefined || this.#idleSinceMs === undefined) return keepLoadedMs;
    return Math.max(0, this.#idleSinceMs + keepLoadedMs - performance.now());
  }

  /** The model's runner, started if need be, in place of another model's. Only whoever has the turn may ask. */
  async #runnerOf(model: InstalledModel): Promise<Runner> {
    if (this.#resident?.model.path === model.path && this.#resident.runner.isAlive()) return this.#resident.runner;
    await this.#resident?.runner.stop();
    this.#resident = undefined;
    const runner = await startRunner({
      entry: this.#options.runnerEntry,
      load: loadRequest(model, this.#options),
      signal: this.#closing.signal,
      onDeath: (how) => {
        this.#runnerDeaths += 1;
        this.#options.onRunnerDeath?.(`The runner of model ${model.id} stopped unexpectedly (${how}).`);
      },
    });
    this.#resident = { model, runner };
    return runner;
  }
}

/** @throws {ServiceError} `unsupported` for what can't be said to this engine at all */
function generateRequest(call: ModelCall): GenerateRequest {
  const { abortSignal: _, headers: __, prompt, ...rest } = call;
  return {
    ...rest,
    input: modelOptionsOf(call).raw === true ? { rawText: rawText(prompt) } : { history: chatHistory(prompt) },
  };
}

function total(inflight: ReadonlyMap<string, CallCount>): number {
  return [...inflight.values()].reduce((sum, { running, queued }) => sum + running + queued, 0);
}

function describe(model: InstalledModel, runner: Runner): Omit<ResidentModel, 'unloadsInMs'> {
  return { id: model.id, pid: runner.pid, contextTokens: runner.model.contextTokens };
}

function loadRequest(model: InstalledModel, options: LocalInferenceOptions): LoadRequest {
  return {
    path: model.path,
    threads: options.threads ?? Math.max(1, availableParallelism() - 1),
    contextTokens: options.contextTokens,
    gpu: options.gpu,
    settings: options.sampling,
    bundle: model.isBuiltIn ? BUILT_IN_SAMPLING : {},
  };
}
