import { UsageError, type CommandContext, type CommandInput, type ExitCode } from '../../command.ts';
import { formatBytes } from '../../format-bytes.ts';
import { modelJson, withModels, type DescribedModel } from './open-models.ts';
import { printList } from '../../print-list.ts';

export async function listModels({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  if (positionals.length > 0) throw new UsageError(`"models list" takes no "${positionals.join(' ')}".`);
  const models = await withModels(context, async ({ catalog, describe }) =>
    Promise.all((await catalog.list()).map(describe)),
  );
  printList(context.terminal, models, { asJson: flags['json'] === true, heads: HEAD, cells: row, json: modelJson });
  return 0;
}

const HEAD = ['ID', 'SIZE', 'ORIGIN', 'QUANTIZATION', 'CONTEXT', 'MEMORY NEEDED'];

function row({ model, details, fit, contextTokens }: DescribedModel): readonly string[] {
  return [
    model.id,
    formatBytes(model.sizeBytes),
    model.origin,
    details?.quantization ?? '-',
    String(contextTokens ?? '-'),
    fit === undefined ? 'not readable' : `${fit.verdict}, ${formatBytes(fit.estimate.totalBytes)}`,
  ];
}
