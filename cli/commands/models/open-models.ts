/** What the actions of `postern models` work with. */
import { readSettings, type Settings } from '../../../service/settings.ts';
import { ServiceError } from '../../../core/errors.ts';
import { judgeFit, type MemoryFit } from '../../../core/inference/local/memory-fit.ts';
import { modelCapabilities } from '../../../core/inference/local/model-capabilities.ts';
import type { LocalModel } from '../../../core/inference/catalog.ts';
import type { InstalledModels } from '../../../core/inference/local/installed-models.ts';
import { createModelDetailsReader, type LocalModelDetails } from '../../../core/inference/local/model-details.ts';
import { availableMemoryBytes } from '../../../core/system-memory.ts';
import { remembered } from '../../../core/remembered.ts';
import { openDatabase } from '../../../storage/database.ts';
import { CommandError, UsageError, type CommandContext } from '../../command.ts';
import { liveContextLimits } from './live-limits.ts';
import { openInstalledModels } from '../../../service/installed-models.ts';

export interface OpenModels {
  readonly settings: Settings;
  readonly catalog: InstalledModels;
  readonly describe: (model: LocalModel) => Promise<DescribedModel>;
}

export interface DescribedModel {
  readonly model: LocalModel;
  /** Undefined, both, for a file that is no readable model. */
  readonly details: LocalModelDetails | undefined;
  readonly fit: MemoryFit | undefined;
  /** How long a conversation with it can get here; undefined where nobody can tell, or it does not fit. */
  readonly contextTokens: number | undefined;
}

/** What was read of the files is kept where the service keeps it, so that no file is read twice. */
export async function withModels<Result>(
  { home, environment }: CommandContext,
  use: (models: OpenModels) => Promise<Result>,
): Promise<Result> {
  const { settings } = await readSettings({ home, environment });
  const database = openDatabase(home);
  try {
    const details = createModelDetailsReader({ database });
    const contextTokens = settings['inference.contextTokens'] ?? undefined;
    const liveLimits = remembered(() => liveContextLimits(home));
    return await use({
      settings,
      catalog: openInstalledModels({ settings, environment }),
      describe: async (model) => {
        const found = await details.read(model);
        const fit = found && judgeFit(found.memory, contextTokens, await availableMemoryBytes());
        const limits = await liveLimits.get();
        return { model, details: found, fit, contextTokens: limits.get(model.id) ?? fit?.limitTokens };
      },
    });
  } finally {
    database.close();
  }
}

/** @throws {UsageError} unless exactly one is given */
export function onlyArgument(positionals: readonly string[], question: string): string {
  const [first, ...more] = positionals;
  if (first === undefined) throw new UsageError(question);
  if (more.length > 0) throw new UsageError(`one at a time: what is "${more.join(' ')}"?`);
  return first;
}

/** @throws {CommandError} that names the way to find the others */
export async function resolveModel(catalog: InstalledModels, id: string): Promise<LocalModel> {
  return catalog.resolve(id).catch((error: unknown) => {
    if (!(error instanceof ServiceError)) throw error;
    throw new CommandError(`there is no model "${id}". "postern models list" shows those there are.`);
  });
}

/** The same of a model in a list and by itself, for programs. */
export function modelJson({ model, details, fit, contextTokens }: DescribedModel): Record<string, unknown> {
  return {
    id: model.id,
    origin: model.origin,
    size_bytes: model.sizeBytes,
    quantization: details?.quantization ?? null,
    context_tokens: contextTokens ?? null,
    trained_context_tokens: details?.contextTokens ?? null,
    capabilities: details === undefined ? [] : modelCapabilities(details),
    fit: fit === undefined ? null : fitJson(fit),
  };
}

function fitJson({ verdict, contextTokens, estimate, availableBytes }: MemoryFit): object {
  return {
    verdict,
    context_tokens: contextTokens,
    needed_bytes: Math.ceil(estimate.totalBytes),
    available_bytes: availableBytes,
  };
}
