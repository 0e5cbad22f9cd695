import { modelCapabilities } from '../../../core/inference/local/model-capabilities.ts';
import type { CommandContext, CommandInput, ExitCode } from '../../command.ts';
import { formatBytes } from '../../format-bytes.ts';
import { fitWords } from './fit-words.ts';
import { modelJson, onlyArgument, resolveModel, withModels, type DescribedModel } from './open-models.ts';

export async function showModel({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const id = onlyArgument(positionals, 'show which model?');
  const shown = await withModels(context, async ({ catalog, describe }) => describe(await resolveModel(catalog, id)));
  const { terminal } = context;
  if (flags['json'] === true) terminal.print(JSON.stringify(everything(shown)));
  else for (const [name, value] of lines(shown)) terminal.print(`${name.padEnd(14)}${value}`);
  return 0;
}

function everything(shown: DescribedModel): object {
  const { model, details, fit } = shown;
  return {
    ...modelJson(shown),
    path: model.path,
    modified_at: new Date(model.modifiedAtMs).toISOString(),
    digest: model.digest ?? null,
    architecture: details?.architecture ?? null,
    parameter_count: details?.parameterCount ?? null,
    license: details?.license ?? null,
    chat_template: details?.chatTemplate ?? null,
    metadata: details?.metadata ?? null,
    memory: fit === undefined ? null : fit.estimate,
  };
}

function lines({ model, details, fit, contextTokens }: DescribedModel): readonly (readonly [string, string])[] {
  const always = [
    ['id', model.id],
    ['origin', model.origin],
    ['path', model.path],
    ['size', `${formatBytes(model.sizeBytes)} (${model.sizeBytes} bytes)`],
    ...(model.digest === undefined ? [] : [['digest', model.digest] as const]),
  ] as const;
  if (details === undefined) return [...always, ['model', 'the file cannot be read: damaged, or no GGUF model']];
  return [
    ...always,
    ['family', details.architecture],
    ['parameters', details.parameterSize],
    ['quantization', details.quantization],
    ['context', contextWords(contextTokens, details.contextTokens)],
    ['can do', modelCapabilities(details).join(', ')],
    ['license', details.license?.split('\n')[0] ?? 'not said'],
    ...(fit === undefined ? [] : [['in memory', fitWords(fit)] as const]),
  ];
}

function contextWords(here: number | undefined, trained: number | undefined): string {
  const trainedWords = trained === undefined ? 'the file does not say for how many it was trained' : `trained for ${trained}`;
  return here === undefined ? trainedWords : `${here} tokens (${trainedWords})`;
}
