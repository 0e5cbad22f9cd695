/** `postern relay`: a relay for oneself and others, a program of its own; and the state of this gateway's relay connections. */
import { RELAY_FLAGS, RelayStartError, relayUsage, RelayUsageError, runRelay } from '../../relay/run-relay.ts';
import { relayStatus } from './relay-status.ts';
import { CommandError, UsageError, type Command, type CommandContext, type ExitCode } from '../command.ts';

export const relay: Command = {
  name: 'relay',
  summary: 'run a relay, through which devices reach their gateways from anywhere; or see how the ways to one are',
  usage: `${relayUsage('postern relay')}
Usage: postern relay status [--json]

How the service that runs here is connected to its relays ("postern serve --relay URL"). Exit code 0 when it is connected
to all of them, 1 when not.
`,
  options: { ...RELAY_FLAGS, json: { type: 'boolean' } },
  usesHome: false,
  async run({ flags, positionals: [action, ...more] }, context) {
    if (action === 'status' && more.length === 0) return relayStatus({ flags }, context);
    if (action !== undefined) throw new UsageError('say nothing more to run a relay, or "status".');
    if (flags['json'] === true) throw new UsageError('--json goes with "status".');
    return run(flags, context);
  },
};

async function run(
  flags: Parameters<typeof runRelay>[0]['flags'],
  { terminal, stop, stopNow }: CommandContext,
): Promise<ExitCode> {
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
