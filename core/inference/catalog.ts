/**
 * Which models clients can name. Where one runs decides who answers for it; whoever lists models reads only what all of
 * them have.
 */

/** Where a model came from. */
export type ModelOrigin = 'built-in' | 'folder' | 'lm-studio' | 'ollama';

/** What every model has, wherever it runs. */
interface NamedModel {
  /** What clients call it. */
  readonly id: string;
  /** Of a file on this machine, whose it is: only what is in the models folder is ours to change. */
  readonly origin: ModelOrigin;
  /** Since when it is as it is, in milliseconds since 1970. */
  readonly modifiedAtMs: number;
  /** On this machine's disk, all of its files together. */
  readonly sizeBytes: number;
}

/** A model whose file is on this machine. */
export interface LocalModel extends NamedModel {
  readonly kind: 'local';
  /** Of its file, or of the first part of a split one. */
  readonly path: string;
  readonly isBuiltIn: boolean;
  /** `sha256:<hex>` where it is known without reading the file. */
  readonly digest?: string | undefined;
}

/** One that a provider runs would be another member; `kind` tells them apart. */
export type Model = LocalModel;

/** What a model says about itself. */
export interface ModelDetails {
  /** The family, such as `llama` or `qwen3`. */
  readonly architecture: string;
  readonly parameterCount: number;
  /** `4.66M`, `7.2B`. */
  readonly parameterSize: string;
  /** Such as `Q4_K_M`, or `unknown`. */
  readonly quantization: string;
  /** The longest conversation that it was trained for, in tokens. */
  readonly contextTokens?: number | undefined;
  /** False for a model that only makes embeddings. */
  readonly isGenerative: boolean;
  /** How a conversation is laid out for it, in Jinja. */
  readonly chatTemplate?: string | undefined;
  readonly license?: string | undefined;
  /** Whatever else it says, by the names that GGUF has for it. */
  readonly metadata: Readonly<Record<string, string | number | boolean>>;
}

export interface ModelCatalog {
  /** Every model there is, the built-in one first, the others by id. */
  list(): Promise<readonly Model[]>;
  /**
   * The model that a client means, by its id or by another name of it; see `model-names.ts`.
   * @throws {ServiceError} `model_not_found`
   */
  resolve(id: string): Promise<Model>;
  /** Undefined for a model that can't be read. */
  describe(model: Model): Promise<ModelDetails | undefined>;
  /** `sha256:` and 64 hexadecimal digits; undefined where there is none, or none yet. */
  digest(model: Model): Promise<string | undefined>;
}
