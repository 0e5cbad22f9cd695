/** Whoever answers with models: calls of them, and which are loaded. Knows neither keys nor wire styles. */
import type { CallOwner } from './call-owner.ts';
import type { LocalModel, Model } from './catalog.ts';
import type { LanguageModel, ModelCall } from './model-port.ts';

export interface Inference {
  /**
   * @param owner whose calls they are: nothing that is kept for one owner is found by another. The service's own by default.
   * @throws {ServiceError} `model_not_found`
   */
  languageModel(id: string, owner?: CallOwner): Promise<LanguageModel>;
  /**
   * How many tokens the model would read for this call. Loads the model if need be, and waits for its turn.
   * @throws {ServiceError} `model_not_found`, and what the model refuses
   */
  countPromptTokens(id: string, call: ModelCall, owner?: CallOwner): Promise<number>;
  /**
   * Loads a model before anybody needs it.
   * @throws {ServiceError} `model_not_found`, `insufficient_resources`, `engine_failed`, `overloaded`
   */
  load(id: string): Promise<void>;
  /** Gives a model's memory back, once the calls before this one are done. A model that is not resident has none. */
  unload(id: string): Promise<void>;
  /**
   * How long a conversation with the model can get, the answer included, in tokens. May have to look into its file.
   * @returns undefined of a model that does not fit into memory
   */
  contextLimit(model: Model): Promise<number | undefined>;
  status(): InferenceStatus;
}

export interface InferenceStatus {
  /** Loaded on this machine now, the one used last first. */
  readonly residents: readonly ResidentModel[];
  /** Calls by model id. */
  readonly inflight: ReadonlyMap<string, { readonly running: number; readonly queued: number }>;
  /** Calls that run or wait at once; a further one is refused. */
  readonly maxCalls: number;
  /** Runners that ended without having been told to, since the service started. */
  readonly runnerCrashes: number;
}

export interface ResidentModel {
  readonly id: string;
  /** As it was when it was loaded: its file may be gone by now. */
  readonly model: LocalModel;
  readonly pid: number;
  /** Tokens of context that are set aside for each conversation now. */
  readonly contextTokens: number;
  /** To which that grows where a conversation needs it. */
  readonly limitTokens: number;
  /** How many conversations keep their evaluated tokens. */
  readonly sequences: number;
  /** What was set aside for it when it was loaded. */
  readonly memoryBytes: number;
  /** How long it stays if nobody calls now; undefined: until another needs its room. */
  readonly unloadsInMs: number | undefined;
  /** The same for a model that was used just now. */
  readonly keepLoadedMs: number | undefined;
}
