/** `postern doctor`: looks at this machine and says what would keep the service from working, or from being safe. */
import { SettingsError } from '../../core/config/settings.ts';
import { readSettings, resolveSettings, type Settings } from '../../service/settings.ts';
import { UsageError, type Command, type CommandContext } from '../command.ts';
import type { Check, CheckedMachine, Finding } from './doctor/check.ts';
import { checks } from './doctor/checks.ts';
import { findLiveServer } from '../live-server.ts';
import type { Style } from '../styled-text.ts';

export const doctor: Command = {
  name: 'doctor',
  summary: 'check this machine and its settings',
  usage: `Usage: postern doctor [--json]

Checks this machine and its settings, whether the service runs or not, and changes nothing. Each line is ok, a warning
(it works, but you should know) or failed, with what to do about it. Exit code 0, or 1 where something failed.

  --json   one JSON object on stdout

Example:
  postern doctor
`,
  options: { json: { type: 'boolean' } },
  usesHome: false,
  async run({ flags, positionals }, context) {
    if (positionals.length > 0) throw new UsageError('"doctor" takes no argument.');
    const results = await examine(context);
    const isHealthy = results.every(({ state }) => state !== 'failed');
    if (flags['json'] === true) context.terminal.print(JSON.stringify({ healthy: isHealthy, checks: results }));
    else print(results, context);
    return isHealthy ? 0 : 1;
  },
};

interface Result extends Finding {
  readonly name: string;
}

async function examine({ home, environment }: CommandContext): Promise<readonly Result[]> {
  const { settings, finding } = await checkSettings({ home, environment });
  const machine: CheckedMachine = { home, environment, settings, server: await findLiveServer(home) };
  const found = await Promise.all(checks.map((check) => runCheck(check, machine)));
  return [{ name: 'settings', ...finding }, ...found];
}

/** The others are looked at under the defaults where there are no settings to go by. */
async function checkSettings(
  where: Pick<CheckedMachine, 'home' | 'environment'>,
): Promise<{ readonly settings: Settings; readonly finding: Finding }> {
  try {
    const { settings } = await readSettings(where);
    return { settings, finding: { state: 'ok', message: 'valid' } };
  } catch (error) {
    if (!(error instanceof SettingsError)) throw error;
    const { settings } = resolveSettings({ flags: {}, environment: {}, file: {} });
    return { settings, finding: { state: 'failed', message: error.message } };
  }
}

async function runCheck(check: Check, machine: CheckedMachine): Promise<Result> {
  const { name } = check;
  try {
    return { name, ...(await check.run(machine)) };
  } catch (error) {
    return { name, state: 'failed', message: error instanceof Error ? error.message : 'the check itself failed' };
  }
}

const STYLES = { ok: 'good', warning: 'warning', failed: 'bad' } as const satisfies Record<Finding['state'], Style>;

const STATE_COLUMNS = 'warning'.length + 2;

function print(results: readonly Result[], { terminal }: CommandContext): void {
  const nameColumns = Math.max(...results.map(({ name }) => name.length)) + 2;
  for (const { name, state, message, remedy } of results) {
    const shown = { text: state.padEnd(STATE_COLUMNS), style: STYLES[state] };
    terminal.print([shown, `${name.padEnd(nameColumns)}${message}`]);
    if (remedy !== undefined) terminal.print(`${' '.repeat(STATE_COLUMNS + nameColumns)}${remedy}`);
  }
}
