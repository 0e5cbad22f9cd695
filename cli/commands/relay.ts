/** `postern relay`: a relay for oneself and others, a program of its own; and the state of this gateway's relay connections. */
import { RELAY_FLAGS, RelayStartError, relayUsage, RelayUsageError, runRelay } from '../../relay/run-relay.ts';
import { relayStatus } from './relay-status.ts';
import { noun } from '../actions.ts';
import {
  CommandError,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';

export const relay: Command = noun({
  name: 'relay',
  summary: 'run a relay, through which devices reach their gateways from anywhere; or see how the ways to one are',
  usage: `${relayUsage('postern relay')}
Usage: postern relay status [--json]

How the service that runs here is connected to its relays ("postern serve --relay URL"). Exit code 0 when it is connected
to all of them, 1 when not.
`,
  options: { ...RELAY_FLAGS, json: { type: 'boolean' } },
  usesHome: false,
  actions: { status: { options: ['json'], run: relayStatus } },
  usual: { options: Object.keys(RELAY_FLAGS), run },
});

async function run({ flags }: CommandInput, { terminal, stop, stopNow }: CommandContext): Promise<ExitCode> {
  const [say, print] = [terminal.say.bind(terminal), terminal.print.bind(terminal)];
  try {
    await runRelay({ flags, say, print, stop, stopNow });
    return 0;
  } catch (error) {
    if (error instanceof RelayUsageError) throw new UsageError(error.message);
    if (error instanceof RelayStartError) throw new CommandError(error.message);
    throw error;
  }
}
