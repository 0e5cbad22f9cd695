/** `postern relay`: a relay for oneself and others. The program is the relay's own, and runs without the rest too. */
import { RELAY_FLAGS, RelayStartError, relayUsage, RelayUsageError, runRelay } from '../relay/run-relay.ts';
import { CommandError, UsageError, type Command, type CommandContext, type ExitCode } from './command.ts';

export const relay: Command = {
  name: 'relay',
  summary: 'run a relay, through which devices reach their gateways from anywhere',
  usage: relayUsage('postern relay'),
  options: RELAY_FLAGS,
  async run({ flags, positionals: [action] }, context) {
    if (action !== undefined) throw new UsageError(`"postern relay" has no "${action}".`);
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
