/** `postern models ps`, `load`, `unload`: what the running service has loaded. */
import * as z from 'zod';
import { CommandError, UsageError, type CommandContext, type CommandInput, type ExitCode } from '../../command.ts';
import { formatBytes } from '../../format-bytes.ts';
import { requireLiveServer } from '../../live-server.ts';
import { table } from '../../table.ts';
import { onlyArgument } from './open-models.ts';

const loadedSchema = z.object({
  models: z.array(
    z.object({
      id: z.string(),
      context_tokens: z.number(),
      sequences: z.number(),
      memory_bytes: z.number(),
      running: z.number(),
      queued: z.number(),
      unloads_in_seconds: z.number().nullable(),
    }),
  ),
});
type Loaded = z.output<typeof loadedSchema>['models'][number];

export async function loadedModels(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  if (input.positionals.length > 0) throw new UsageError('"ps" takes no model: it lists what is loaded.');
  return tell(await (await requireLiveServer(context.home)).ask('GET', 'models'), input, context);
}

export function loadModel(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  return change('load', input, context);
}

export function unloadModel(input: CommandInput, context: CommandContext): Promise<ExitCode> {
  return change('unload', input, context);
}

async function change(action: 'load' | 'unload', input: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { terminal, stop } = context;
  const model = onlyArgument(input.positionals, `${action} which model?`);
  const live = await requireLiveServer(context.home);
  terminal.say(action === 'load' ? `Loading ${model} ...` : `Unloading ${model}, once its calls are done ...`);
  try {
    const answer = await live.ask('POST', `models/${action}`, { body: { model }, timeoutMs: undefined, signal: stop });
    return tell(answer, input, context);
  } catch (error) {
    if (!stop.aborted) throw error;
    throw new CommandError(`no longer waiting; the service goes on to ${action} it.`);
  }
}

function tell(answer: unknown, { flags }: CommandInput, { terminal }: CommandContext): 0 {
  const { models } = loadedSchema.parse(answer);
  if (flags['json'] === true) terminal.print(JSON.stringify({ models }));
  else if (models.length === 0) terminal.print('no model is loaded');
  else for (const line of table(HEADS, models.map(cells))) terminal.print(line);
  return 0;
}

const HEADS = ['ID', 'MEMORY', 'CONTEXT', 'CALLS', 'STAYS'];

function cells(model: Loaded): readonly string[] {
  const { id, context_tokens: tokens, sequences, running, queued } = model;
  const calls = running + queued === 0 ? 'idle' : `${running} running, ${queued} waiting`;
  return [id, formatBytes(model.memory_bytes), `${sequences} x ${tokens} tokens`, calls, leaving(model)];
}

function leaving({ running, queued, unloads_in_seconds: seconds }: Loaded): string {
  if (seconds === null) return 'stays loaded';
  const minutes = Math.ceil(seconds / 60);
  return running + queued > 0 ? `unloaded ${minutes} min after the last` : `unloaded in ${minutes} min`;
}
