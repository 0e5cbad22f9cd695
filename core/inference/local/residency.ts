/**
 * Which models are loaded, each in a runner process of its own, and how one comes and goes. A model is unloaded only
 * while no call uses it; a load that needs room waits for that, and until then lets nobody in who came after it.
 */
import { ServiceError } from '../../errors.ts';
import type { ContextLimit } from './context-limit.ts';
import type { LoadPlan } from './load-plan.ts';
import type { LocalModel } from '../catalog.ts';
import type { ResidentModel } from '../inference.ts';
import { startRunner, type Runner } from './runner-process.ts';
import type { LoadRequest } from './runner/protocol.ts';

export interface ResidencyOptions {
  /** `strict` keeps one model loaded, `flexible` as many as fit in memory. */
  readonly eviction: 'strict' | 'flexible';
  /** How long a model stays loaded after its last call; undefined keeps it until another needs its room. */
  readonly keepLoadedMs: number | undefined;
  /** True generates for several calls of one model at once. */
  readonly batching: boolean;
  /** The compiled `runner/main.js`. */
  readonly runnerEntry: URL;
  /** How the model would be loaded into this much memory; undefined if it can't be. */
  readonly plan: (model: LocalModel, wanted: WantedRoom) => Promise<PlannedLoad | undefined>;
  /** What a new process could take before the machine swaps, in bytes. */
  readonly availableMemoryBytes: () => Promise<number>;
  readonly loadRequest: (model: LocalModel, plan: PlannedLoad) => LoadRequest;
  readonly onRunnerCrash: (message: string) => void;
  /** Something may be possible now that was not before. */
  readonly onChange: () => void;
  readonly onLoadFailed: (model: LocalModel, error: unknown) => void;
  /** Ends every load, with its reason. */
  readonly closing: AbortSignal;
}

export interface WantedRoom {
  readonly availableBytes: number;
  /** Of context. */
  readonly tokens: number;
}

export interface PlannedLoad extends LoadPlan {
  readonly limit: ContextLimit;
}

/** Why a guest's model is not loaded: another would have to go, and whoever uses that one would wait for it again. */
export const NO_ROOM = new ServiceError(
  'overloaded',
  'Another model is loaded, and a web page cannot have it unloaded. Use that model, or try again later.',
);

export interface AdmittedCall {
  readonly model: LocalModel;
  readonly generates: boolean;
  /** Tokens of context without which it is not to start, where the model can have as many; 0: as it is loaded. */
  readonly neededTokens: number;
}

/** A model's runner, for as long as a call needs it. */
export interface Use {
  readonly runner: Runner;
  /** Once, when the call is over. */
  leave(): void;
}

interface Resident {
  readonly model: LocalModel;
  readonly runner: Runner;
  readonly memoryBytes: number;
  /** Of context, which it was loaded for; there may have been room for less. */
  readonly wantedTokens: number;
  /** Calls that use it, and those of them that generate. */
  users: number;
  generating: number;
  idle: { readonly timer: NodeJS.Timeout; readonly sinceMs: number } | undefined;
  /** Once it is to go nobody new gets in; it is gone when the last call is over. */
  leaving: Promise<void> | undefined;
  onIdle: (() => void) | undefined;
}

interface Loading {
  readonly model: LocalModel;
  /** The calls that came before: they may still use the models that have to make room. */
  readonly ahead: ReadonlySet<unknown>;
  /** False: it is loaded where there is room, or not at all (`NO_ROOM`). */
  readonly mayUnload: boolean;
  /** Of context. */
  readonly tokens: number;
  readonly cancel: AbortController;
  done: Promise<void>;
  needsRoom: boolean;
}

export class Residency {
  readonly #options: ResidencyOptions;
  /** By path; the one used last comes last. */
  readonly #residents = new Map<string, Resident>();
  #loading: Loading | undefined;
  #roomMayHaveCome = Promise.withResolvers<void>();
  runnerCrashes = 0;

  constructor(options: ResidencyOptions) {
    this.#options = options;
  }

  /**
   * @returns `absent` if nothing is under way to load it, with as long a context as the call needs, `busy` if the call
   * can't start yet for any other reason
   */
  admit(call: AdmittedCall): Use | 'busy' | 'absent' {
    const resident = this.#find(call.model);
    if (resident === undefined || isTooShort(resident, call.neededTokens)) {
      return this.#loading === undefined ? 'absent' : 'busy';
    }
    if (resident.leaving !== undefined) return 'busy';
    if (this.#loading?.needsRoom === true && !this.#loading.ahead.has(call)) return 'busy';
    if (call.generates && resident.generating >= this.#slots(resident)) return 'busy';
    return this.#use(resident, call.generates);
  }

  /** Begins to load an absent model; `onChange` or `onLoadFailed` tell of its end. */
  load(model: LocalModel, wanted: Pick<Loading, 'ahead' | 'mayUnload' | 'tokens'>): void {
    const cancel = new AbortController();
    const loading: Loading = { model, ...wanted, cancel, needsRoom: true, done: Promise.resolve() };
    this.#loading = loading;
    loading.done = this.#load(loading);
  }

  /** Nobody waits for this model any more: what has not begun to load need not. */
  abandon(model: LocalModel): void {
    if (this.#loading?.model.path === model.path && this.#loading.needsRoom) this.#loading.cancel.abort();
  }

  /** Resolves when the model's memory is back. Calls that use it now are waited for. */
  async unload(model: LocalModel): Promise<void> {
    if (this.#loading?.model.path === model.path) await this.#loading.done;
    const resident = this.#find(model);
    if (resident !== undefined) await this.#evict(resident);
  }

  /** The one used last first. */
  list(): readonly ResidentModel[] {
    const alive = [...this.#residents.values()].filter(({ runner }) => runner.isAlive());
    return alive.toReversed().map((resident) => ({
      id: resident.model.id,
      model: resident.model,
      pid: resident.runner.pid,
      contextTokens: resident.runner.model.contextTokens,
      limitTokens: resident.runner.model.limit.tokens,
      sequences: resident.runner.model.sequences,
      memoryBytes: resident.memoryBytes,
      unloadsInMs: this.#unloadsInMs(resident),
      keepLoadedMs: this.#options.keepLoadedMs,
    }));
  }

  /** Ends every runner, and the calls that use it with this reason. The `closing` signal has fired. */
  async close(reason: Error): Promise<void> {
    const residents = [...this.#residents.values()];
    for (const { idle } of residents) clearTimeout(idle?.timer);
    await Promise.all([...residents.map(({ runner }) => runner.stop(reason)), this.#loading?.done]);
  }

  async #load(loading: Loading): Promise<void> {
    const { model, cancel } = loading;
    const signal = AbortSignal.any([this.#options.closing, cancel.signal]);
    try {
      const plan = await this.#makeRoom(loading, signal);
      loading.needsRoom = false;
      await this.#start(loading, plan, signal);
    } catch (error) {
      this.#options.onLoadFailed(model, error);
    } finally {
      this.#loading = undefined;
      this.#options.onChange();
    }
  }

  /** @returns how to load the model now that there is room for it */
  async #makeRoom({ model, mayUnload, tokens }: Loading, signal: AbortSignal): Promise<PlannedLoad> {
    const { plan, eviction } = this.#options;
    for (;;) {
      signal.throwIfAborted();
      this.#roomMayHaveCome = Promise.withResolvers();
      const free = await this.#options.availableMemoryBytes();
      const others = [...this.#residents.values()];
      const held = others.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0);
      const own = this.#find(model);
      if (own !== undefined) {
        // It is loaded, with too short a context.
        await (own.users === 0 ? this.#evict(own) : until(this.#roomMayHaveCome.promise, signal));
        continue;
      }
      // Refused before anybody has to go for it.
      if ((await plan(model, { availableBytes: free + held, tokens })) === undefined)
        throw tooLarge(model, free + held);
      const best = await plan(model, { availableBytes: free, tokens });
      const isRoomEnough = eviction === 'strict' ? others.length === 0 : best?.isReduced === false;
      if (best !== undefined && (isRoomEnough || others.length === 0)) return best;
      if (!mayUnload) throw NO_ROOM;
      const idle = others.find(({ users }) => users === 0);
      if (idle !== undefined) await this.#evict(idle);
      else if (best !== undefined && eviction === 'flexible') return best;
      else if (others.length === 0) throw tooLarge(model, free);
      else await until(this.#roomMayHaveCome.promise, signal);
    }
  }

  async #start({ model, tokens }: Loading, plan: PlannedLoad, signal: AbortSignal): Promise<void> {
    const { runnerEntry, loadRequest, onRunnerCrash } = this.#options;
    let resident: Resident | undefined;
    const runner = await startRunner({
      entry: runnerEntry,
      load: loadRequest(model, plan),
      signal,
      onExit: (how) => {
        this.runnerCrashes += 1;
        onRunnerCrash(`The runner of model ${model.id} stopped unexpectedly (${how}).`);
        if (resident !== undefined) this.#remove(resident);
      },
    });
    resident = {
      model,
      runner,
      memoryBytes: plan.memoryBytes,
      wantedTokens: tokens,
      users: 0,
      generating: 0,
      idle: undefined,
      leaving: undefined,
      onIdle: undefined,
    };
    this.#residents.set(model.path, resident);
    this.#startIdling(resident);
  }

  #find(model: LocalModel): Resident | undefined {
    const resident = this.#residents.get(model.path);
    if (resident?.runner.isAlive() !== false) return resident;
    this.#residents.delete(model.path);
    return undefined;
  }

  #slots({ runner }: Resident): number {
    return this.#options.batching ? runner.model.sequences : 1;
  }

  #use(resident: Resident, generates: boolean): Use {
    this.#stopIdling(resident);
    this.#residents.delete(resident.model.path);
    this.#residents.set(resident.model.path, resident);
    resident.users += 1;
    if (generates) resident.generating += 1;
    return {
      runner: resident.runner,
      leave: () => {
        resident.users -= 1;
        if (generates) resident.generating -= 1;
        // Those who were let in already go before whoever waits for the room.
        this.#options.onChange();
        if (resident.users > 0) return;
        this.#startIdling(resident);
        resident.onIdle?.();
        this.#roomMayHaveCome.resolve();
      },
    };
  }

  #evict(resident: Resident): Promise<void> {
    this.#stopIdling(resident);
    resident.leaving ??= this.#end(resident);
    return resident.leaving;
  }

  async #end(resident: Resident): Promise<void> {
    if (resident.users > 0) await new Promise<void>((resolve) => (resident.onIdle = resolve));
    await resident.runner.stop();
    this.#remove(resident);
  }

  #remove(resident: Resident): void {
    if (this.#residents.get(resident.model.path) !== resident) return;
    this.#residents.delete(resident.model.path);
    this.#roomMayHaveCome.resolve();
    this.#options.onChange();
  }

  /** Nobody may call for a long time now; what a model takes is gigabytes. */
  #startIdling(resident: Resident): void {
    const { keepLoadedMs, closing } = this.#options;
    if (keepLoadedMs === undefined || closing.aborted || resident.leaving !== undefined) return;
    const timer = setTimeout(() => void this.#evict(resident), keepLoadedMs).unref();
    resident.idle = { timer, sinceMs: performance.now() };
  }

  #stopIdling(resident: Resident): void {
    clearTimeout(resident.idle?.timer);
    resident.idle = undefined;
  }

  #unloadsInMs({ idle }: Resident): number | undefined {
    const { keepLoadedMs } = this.#options;
    if (keepLoadedMs === undefined || idle === undefined) return keepLoadedMs;
    return Math.max(0, idle.sinceMs + keepLoadedMs - performance.now());
  }
}

/** Where it can have more than it has, and that was not tried already. */
function isTooShort({ runner, wantedTokens }: Resident, neededTokens: number): boolean {
  const { contextTokens, limit } = runner.model;
  return contextTokens < Math.min(neededTokens, limit.tokens) && wantedTokens < neededTokens;
}

function tooLarge(model: LocalModel, availableBytes: number): ServiceError {
  const have = (availableBytes / 1e9).toFixed(1);
  const needs = (model.sizeBytes / 1e9).toFixed(1);
  return new ServiceError(
    'insufficient_resources',
    `The model '${model.id}' does not fit into memory: its file alone is ${needs} GB, and ${have} GB are free for it. ` +
      'Close other programs, choose a smaller model or quantization, or set a smaller inference.contextTokens.',
    { field: 'model' },
  );
}

/** @throws the signal's reason, if it fires first */
function until(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(signal.reason);
    signal.addEventListener('abort', leave, { once: true });
    void promise.then(resolve).finally(() => signal.removeEventListener('abort', leave));
  });
}
