/**
 * Ollama's lists and descriptions of models: `GET /api/tags`, `POST /api/show`, `GET /api/ps`. Pure.
 *
 * The contract wins over Ollama in two things: a digest begins with `sha256:`, and  `capabilities` leaves `tools` out, unless
 * the owner wants it said.
 */
import * as z from 'zod';
import type { Model, ModelDetails } from '../../../core/inference/catalog.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';

/** A model and what is known about it; both may still be unknown, or never be known of a damaged file. */
export interface KnownModel {
  readonly model: Model;
  readonly details: ModelDetails | undefined;
  readonly digest: string | undefined;
}

/**
 * In place of a digest that is still being worked out: no digest, and plainly so. Ollama's own command line cuts the
 * first twelve characters off without looking, so none at all would crash it.
 */
const PENDING_DIGEST = 'sha256:pending';

/** For a model that stays until another takes its place. Clients show this as "forever". */
const NEVER_EXPIRES = '2999-12-31T23:59:59.000Z';

export function encodeTag({ model, details, digest }: KnownModel): object {
  return {
    name: model.id,
    model: model.id,
    modified_at: new Date(model.modifiedAtMs).toISOString(),
    size: model.sizeBytes,
    digest: digest ?? PENDING_DIGEST,
    details: encodeDetails(details),
  };
}

/** The size is the model's on disk, and where it was loaded to is left out: the engine reports neither. */
interface Residency {
  readonly contextTokens: number;
  /** Milliseconds since 1970; undefined for a model that stays until another is asked for. */
  readonly expiresAtMs: number | undefined;
}

export function encodeRunning({ model, details, digest }: KnownModel, residency: Residency): object {
  return {
    name: model.id,
    model: model.id,
    size: model.sizeBytes,
    digest: digest ?? PENDING_DIGEST,
    details: encodeDetails(details),
    expires_at: residency.expiresAtMs === undefined ? NEVER_EXPIRES : new Date(residency.expiresAtMs).toISOString(),
    context_length: residency.contextTokens,
  };
}

function encodeDetails(details: ModelDetails | undefined): object {
  return {
    parent_model: '',
    format: 'gguf',
    family: details?.architecture ?? '',
    families: details === undefined ? [] : [details.architecture],
    parameter_size: details?.parameterSize ?? '',
    quantization_level: details?.quantization ?? '',
  };
}

export const ollamaShowRequestSchema = z.looseObject({
  model: z.string().nullish(),
  /** What `model` was called before. */
  name: z.string().nullish(),
  verbose: z.boolean().nullish(),
});

interface ShowRequest {
  readonly model: string;
  /** `verbose` asks for lists of all tokens, which nobody here reads. */
  readonly ignored: readonly string[];
}

/** @throws {RequestError} `bad_request` that names the field at fault */
export function parseShowRequest(json: unknown): ShowRequest {
  const { model, name, verbose } = parseBody(ollamaShowRequestSchema, json);
  const wanted = model || name;
  if (wanted) return { model: wanted, ignored: verbose === true ? ['verbose'] : [] };
  throw new RequestError('bad_request', "model: expected the model's name", { param: 'model' });
}

interface Shown {
  readonly model: Model;
  readonly details: ModelDetails;
  /** How long a conversation can get here, whatever the model was trained for. */
  readonly contextTokens: number | undefined;
  /** Whether it is said that the model can use tools. */
  readonly announcesTools: boolean;
}

export function encodeShow({ model, details, contextTokens, announcesTools }: Shown): object {
  const parameters = [
    ...samplingParameters(details),
    ...(contextTokens === undefined ? [] : [`num_ctx ${contextTokens}`]),
  ];
  return {
    license: details.license ?? '',
    modelfile: [`FROM ${model.id}`, ...parameters.map((line) => `PARAMETER ${line}`), ''].join('\n'),
    parameters: parameters.join('\n'),
    template: details.chatTemplate ?? '',
    details: encodeDetails(details),
    model_info: modelInfo(details, contextTokens),
    capabilities: capabilities(details, announcesTools),
    modified_at: new Date(model.modifiedAtMs).toISOString(),
  };
}

/** Every model that writes text is held to a tool's schema here. */
function capabilities({ isGenerative }: ModelDetails, announcesTools: boolean): string[] {
  if (!isGenerative) return ['embedding'];
  return announcesTools ? ['completion', 'tools'] : ['completion'];
}

/** GGUF's names of the sampling that a model's maker recommends, and Ollama's for the same. */
const SAMPLING_PARAMETERS: Readonly<Record<string, string>> = {
  'general.sampling.temp': 'temperature',
  'general.sampling.top_p': 'top_p',
  'general.sampling.top_k': 'top_k',
  'general.sampling.min_p': 'min_p',
  'general.sampling.penalty_repeat': 'repeat_penalty',
};

function samplingParameters({ metadata }: ModelDetails): string[] {
  return Object.entries(SAMPLING_PARAMETERS).flatMap(([key, name]) =>
    metadata[key] === undefined ? [] : [`${name} ${metadata[key]}`],
  );
}

/** Names of the model inside its file. Clients would show them in place of the one that it is called by here. */
const OTHER_NAMES: ReadonlySet<string> = new Set(['general.name', 'general.basename']);

/** Clients take the context that they may fill from GGUF's key, so it says what there is. */
function modelInfo(details: ModelDetails, contextTokens: number | undefined): object {
  const metadata = Object.entries(details.metadata).filter(([key]) => !OTHER_NAMES.has(key));
  return {
    ...Object.fromEntries(metadata),
    'general.parameter_count': details.parameterCount,
    ...(contextTokens === undefined ? {} : { [`${details.architecture}.context_length`]: contextTokens }),
  };
}
