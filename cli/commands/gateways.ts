/** `postern gateways`: what this machine is paired with. */
import { quoted } from '../../core/printable.ts';
import { CommandError, UsageError, type Command, type CommandContext, type ExitCode } from '../command.ts';
import { forgetGateway, listPairedGateways, loadPairedDevice, type PairedGateway } from '../paired-gateways.ts';

export const gateways: Command = {
  name: 'gateways',
  summary: 'list and forget the gateways that this machine is paired with',
  usage: `Usage: postern gateways [list] [--json]
       postern gateways key [NAME|ID]
       postern gateways forget NAME|ID [--json]

  list     every gateway that this machine is a device of
  key      prints the plain access key that came with the pairing ("postern invite --bearer"), for clients that call the
           gateway themselves; what they say can be read on the network
  forget   takes this machine's keys for it away, here; at home the device counts until it is revoked there

  --json   JSON on stdout

Example:
  postern gateways forget study
`,
  options: { json: { type: 'boolean' } },
  async run({ flags, positionals: [action = 'list', ...rest] }, context) {
    const asJson = flags['json'] === true;
    if (action === 'list' && rest.length === 0) return list(asJson, context);
    const wanted = rest.length === 0 ? undefined : rest.join(' ');
    if (action === 'key') return printKey(wanted, asJson, context);
    if (action === 'forget' && wanted !== undefined) return forget(wanted, asJson, context);
    throw new UsageError('say "list", "key", or "forget" and which one.');
  },
};

async function list(asJson: boolean, { home, terminal }: CommandContext): Promise<ExitCode> {
  const found = await listPairedGateways(home);
  if (asJson) terminal.print(JSON.stringify(found.map(resourceOf)));
  else if (found.length === 0)
    terminal.say('This machine is paired with no gateway. "postern pair -" takes an invite.');
  else
    for (const { gatewayName, gatewayId, deviceId, pairedAt } of found) {
      const since = new Date(pairedAt).toLocaleString('sv-SE');
      terminal.print(`${quoted(gatewayName)}\n  gateway ${gatewayId}\n  device  ${deviceId}, since ${since}`);
    }
  return 0;
}

async function printKey(wanted: string | undefined, asJson: boolean, context: CommandContext): Promise<ExitCode> {
  if (asJson) throw new UsageError('--json does not go with this: it prints the key and nothing else.');
  const gateway = chooseGateway(await listPairedGateways(context.home), wanted);
  const { bearerKey } = await loadPairedDevice(gateway, context);
  if (bearerKey === undefined) {
    throw new CommandError(
      `no plain key came with the pairing with ${quoted(gateway.gatewayName)}. Pair again with an invite that makes one: ` +
        '"postern invite --bearer" there.',
    );
  }
  context.terminal.print(bearerKey);
  return 0;
}

async function forget(wanted: string, asJson: boolean, context: CommandContext): Promise<ExitCode> {
  const gateway = chooseGateway(await listPairedGateways(context.home), wanted);
  await forgetGateway(gateway, context);
  const { terminal } = context;
  if (asJson) terminal.print(JSON.stringify({ forgotten: resourceOf(gateway) }));
  terminal.say(
    `Forgotten: ${quoted(gateway.gatewayName)}. Device ${gateway.deviceId} counts there until its owner says ` +
      `"postern devices revoke ${gateway.deviceId}".`,
  );
  return 0;
}

function resourceOf({ gatewayId, gatewayName, deviceId, pairedAt }: PairedGateway) {
  return { gateway_id: gatewayId, gateway_name: gatewayName, device_id: deviceId, paired_at: pairedAt };
}

/**
 * @param wanted its name, or its id with blanks or without; where there is only one, nothing
 * @throws {CommandError} for none, and for several
 */
export function chooseGateway(found: readonly PairedGateway[], wanted: string | undefined): PairedGateway {
  const id = wanted?.replaceAll(/\s/g, '').toLowerCase();
  const fitting = found.filter(
    ({ gatewayName, gatewayId }) => wanted === undefined || gatewayName === wanted || plainId(gatewayId) === id,
  );
  const [only, ...others] = fitting;
  if (only !== undefined && others.length === 0) return only;
  if (found.length === 0) {
    throw new CommandError(
      'this machine is paired with no gateway. Make an invite at home, then "postern pair -" here.',
    );
  }
  const known = (fitting.length === 0 ? found : fitting)
    .map(({ gatewayName, gatewayId }) => `\n  ${quoted(gatewayName)}  ${plainId(gatewayId)}`)
    .join('');
  if (fitting.length === 0)
    throw new CommandError(`this machine is not paired with "${wanted ?? ''}", but with:${known}`);
  throw new CommandError(`which one? Give its name, or its id where two have the same name:${known}`);
}

function plainId(gatewayId: string): string {
  return gatewayId.replaceAll(' ', '');
}
