/** `postern gateways`: what this machine is paired with. */
import { quoted } from '../../core/printable.ts';
import { noun, refuseMore } from '../actions.ts';
import {
  CommandError,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';
import { localTime } from '../local-time.ts';
import { forgetGateway, listPairedGateways, loadPairedDevice, type PairedGateway } from '../paired-gateways.ts';
import { printList } from '../print-list.ts';

export const gateways: Command = noun({
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
  actions: {
    list: { options: ['json'], run: list },
    key: { options: [], run: printKey },
    forget: { options: ['json'], run: forget },
  },
  usual: 'list',
});

async function list({ flags, positionals }: CommandInput, { home, terminal }: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  printList(terminal, await listPairedGateways(home), {
    asJson: flags['json'] === true,
    heads: ['NAME', 'GATEWAY', 'DEVICE', 'PAIRED'],
    cells: cellsOf,
    json: resourceOf,
    hint: 'This machine is paired with no gateway. "postern pair -" takes an invite.',
  });
  return 0;
}

function cellsOf({ gatewayName, gatewayId, deviceId, pairedAt }: PairedGateway): readonly string[] {
  return [quoted(gatewayName), gatewayId, deviceId, localTime(pairedAt)];
}

async function printKey({ positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const wanted = positionals.length === 0 ? undefined : positionals.join(' ');
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

async function forget({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const wanted = positionals.join(' ');
  if (wanted === '') throw new UsageError('say which one: "forget NAME".');
  const gateway = chooseGateway(await listPairedGateways(context.home), wanted);
  await forgetGateway(gateway, context);
  const { terminal } = context;
  if (flags['json'] === true) terminal.print(JSON.stringify({ forgotten: resourceOf(gateway) }));
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
