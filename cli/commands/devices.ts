/** `postern devices`: lists, renames and revokes what is paired with this machine. */
import { quoted } from '../../core/printable.ts';
import { isLabel } from '../../identity/access-claims.ts';
import type { DeviceResource } from '../../gateway/wire/admin/pairings.ts';
import { noun, refuseMore } from '../actions.ts';
import {
  CommandError,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';
import { cutText } from '../cut-text.ts';
import { findDeviceAdmin, type DeviceAdmin } from '../device-admin.ts';
import { notDurableText } from '../key-admin.ts';
import { localTime } from '../local-time.ts';
import { statusCell } from '../status-cell.ts';
import type { Cell } from '../table.ts';
import { printList } from '../print-list.ts';

export const devices: Command = noun({
  name: 'devices',
  summary: 'list, rename and revoke paired devices',
  usage: `Usage: postern devices [list] [--json]
       postern devices rename ID NAME
       postern devices revoke ID [--json]

  list      every device that was paired, the newest first; "postern invite" pairs one
  rename    call it something else; the name is yours alone
  revoke    the device and the keys that came with it are no longer valid, and their requests in flight are ended; when
            the command returns, that is done

The first few characters of an ID will do, as long as no other begins with them.

  --json    JSON on stdout

Example:
  postern devices rename 3f9a "old phone"
`,
  options: { json: { type: 'boolean' } },
  actions: {
    list: { options: ['json'], run: list },
    rename: { options: [], run: rename },
    revoke: { options: ['json'], run: revoke },
  },
  usual: 'list',
});

const HEADS = ['ID', 'STATUS', 'DEVICE', 'FOR', 'PAIRED', 'SEEN', 'REVOKED'];

async function list({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  printList(context.terminal, await (await findDeviceAdmin(context)).list(), {
    asJson: flags['json'] === true,
    heads: HEADS,
    cells: cellsOf,
    hint: 'No device is paired. "postern invite" pairs one.',
  });
  return 0;
}

function cellsOf(device: DeviceResource): readonly Cell[] {
  const { id, status, agent_index: agent, scope, paired_at: pairedAt, last_seen_at: seenAt, revoked_at: end } = device;
  const forWhat = agent === null ? 'every agent' : `agent ${agent} (${scope})`;
  const seen = seenAt === null ? 'never' : `${localTime(seenAt)}${pathText(device)}`;
  const revoked = end === null ? '' : localTime(end);
  return [id, statusCell(status), deviceText(device), forWhat, localTime(pairedAt), seen, revoked];
}

/** `"phone" ("android", "Pixel 9")`: its own words, if the owner did not rename it. */
export function deviceText({ name, platform, model }: DeviceResource): string {
  const what = model === null ? quoted(platform) : `${quoted(platform)}, ${quoted(model)}`;
  return `${quoted(name)} (${what})`;
}

/** Which way it came last. */
export function pathText({ last_path: path }: DeviceResource): string {
  if (path === null) return '';
  return path === 'lan' ? ' over the network' : ' through a relay';
}

async function rename({ positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const [prefix, name, ...more] = positionals;
  if (prefix === undefined || name === undefined) throw new UsageError('say which one, and what to call it: ID NAME.');
  refuseMore(more);
  if (!isLabel(name)) throw new UsageError('a name is 1 to 64 characters that can be shown as they are.');
  const admin = await findDeviceAdmin(context);
  const device = await findByPrefix(admin, prefix);
  await admin.rename(device.id, name);
  context.terminal.say(`${quoted(device.name)} is now ${quoted(name)}.`);
  return 0;
}

async function revoke({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const [prefix, ...more] = positionals;
  if (prefix === undefined) throw new UsageError('say which one: "revoke ID".');
  refuseMore(more);
  const admin = await findDeviceAdmin(context);
  const device = await findByPrefix(admin, prefix);
  const { result, cut, isDurable, reason } = await admin.revoke(device.id);
  const isNew = result === 'revoked';
  const { terminal } = context;
  if (flags['json'] === true)
    terminal.print(JSON.stringify({ revoked: isNew ? [device.id] : [], cut, durable: isDurable }));
  else terminal.say(isNew ? `Revoked: ${deviceText(device)}.${cutText(cut)}` : 'It was revoked before.');
  if (isDurable) return 0;
  terminal.say(notDurableText({ reason }));
  return 1;
}

/** @throws {CommandError} where none begins with it, or several do */
async function findByPrefix(admin: DeviceAdmin, prefix: string): Promise<DeviceResource> {
  if (!/^[0-9a-f]{1,16}$/.test(prefix)) {
    throw new UsageError('an ID is up to 16 hexadecimal digits; "postern devices" shows them.');
  }
  const [device, ...others] = (await admin.list()).filter(({ id }) => id.startsWith(prefix));
  if (device === undefined) throw new CommandError(`there is no device ${prefix}. "postern devices" shows them all.`);
  if (others.length > 0) throw new CommandError(`${others.length + 1} begin with "${prefix}". Give more of the ID.`);
  return device;
}
