/** `postern keys`: makes, lists and revokes the access keys that other machines come in with. */
import { quoted } from '../../core/printable.ts';
import { findAccessKey } from '../../identity/access-key.ts';
import { isLabel, type AccessClaims } from '../../identity/access-claims.ts';
import type { AccessKeyRefusal } from '../../identity/node/access-key-check.ts';
import { MAX_LIFETIME_S, type KeyResource } from '../../gateway/wire/admin/access-keys.ts';
import { isoTimeOf } from '../../gateway/wire/iso-time.ts';
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
import { agentIndexOf, findDurationS, type Flag } from '../flags.ts';
import { findKeyAdmin, notDurableText, verifyHere, type KeyAdmin } from '../key-admin.ts';
import { localTime } from '../local-time.ts';
import { statusCell } from '../status-cell.ts';
import type { Cell } from '../table.ts';
import { printList } from '../print-list.ts';

export const keys: Command = noun({
  name: 'keys',
  summary: 'make, list and revoke access keys',
  usage: `Usage: postern keys create [--agent N] [--expires 90d] [--label TEXT] [--json]
       postern keys [list] [--json]
       postern keys revoke ID [--json]
       postern keys revoke --all [--json]
       postern keys inspect - [--json]

  create    makes a key and prints it, this once; nobody can print it again
  list      every key that was made, the newest first; not the keys themselves
  revoke    the key is no longer valid, and its requests in flight are ended; when the command returns, that is done
  inspect   reads a key from standard input and tells what it says, and whether it counts here

  --agent N          for the agent of this number only; else for every agent
  --expires TIME     30m, 12h, 90d (default) or never
  --label TEXT       what you call it
  --all              every key there is
  --json             one JSON object on stdout

Example:
  postern keys create --label laptop --expires 30d > laptop.key
`,
  options: {
    agent: { type: 'string' },
    expires: { type: 'string' },
    label: { type: 'string' },
    all: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  actions: {
    create: { options: ['agent', 'expires', 'label', 'json'], run: create },
    list: { options: ['json'], run: list },
    revoke: { options: ['all', 'json'], run: revoke },
    inspect: { options: ['json'], run: inspect },
  },
  usual: 'list',
});

async function create({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const body = {
    agent_index: agentIndexOf(flags['agent']),
    expires_in_seconds: lifetimeS(flags['expires']),
    label: labelOf(flags['label']),
  };
  const { token, ...key } = await (await findKeyAdmin(context)).create(body);
  const { terminal } = context;
  if (flags['json'] === true) terminal.print(JSON.stringify({ token, ...key }));
  else terminal.print(token);
  terminal.say(
    `Key ${key.id}, ${forWhat(key)}, ${untilWhen(key)}. It is shown this once: keep it where secrets are kept.\n` +
      `"postern keys revoke ${key.id}" takes it back.`,
  );
  return 0;
}

const HEADS = ['ID', 'STATUS', 'FOR', 'VALID', 'USED', 'LABEL'];

async function list({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  printList(context.terminal, await (await findKeyAdmin(context)).list(), {
    asJson: flags['json'] === true,
    heads: HEADS,
    cells: cellsOf,
    hint: 'There are no access keys. "postern keys create" makes one.',
  });
  return 0;
}

function cellsOf(key: KeyResource): readonly Cell[] {
  const { id, label } = key;
  return [id, statusCell(key.status), forWhat(key), untilWhen(key), useOf(key), label === null ? '' : quoted(label)];
}

/** A grant is never presented: its device is seen instead. */
function useOf({ device_bound: isGrant, last_used_at: usedAt }: KeyResource): string {
  if (isGrant) return 'grant of a device, see "postern devices"';
  return usedAt === null ? 'never used' : `used ${localTime(usedAt)}`;
}

async function revoke({ flags, positionals: [id, ...rest] }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(rest);
  if ((id === undefined) !== (flags['all'] === true)) throw new UsageError('name one key by its id, or say --all.');
  const admin = await findKeyAdmin(context);
  const ended = id === undefined ? await admin.revokeAll() : await revokeOne(id, admin);
  const { revoked, cut, isDurable } = ended;
  const { terminal } = context;
  if (flags['json'] === true) terminal.print(JSON.stringify({ revoked, cut, durable: isDurable }));
  else
    terminal.say(
      revoked.length === 0 ? 'There was nothing to revoke.' : `Revoked: ${revoked.join(', ')}.${cutText(cut)}`,
    );
  if (isDurable) return 0;
  terminal.say(notDurableText(ended));
  return 1;
}

async function revokeOne(id: string, admin: KeyAdmin): ReturnType<KeyAdmin['revokeAll']> {
  // Whoever pastes the key itself is not told it back.
  if (!/^[0-9a-f]{16}$/.test(id))
    throw new UsageError('an id is 16 hexadecimal digits; "postern keys list" shows them.');
  const { result, ...ended } = await admin.revoke(id);
  if (result === 'unknown') throw new CommandError(`there is no key ${id}. "postern keys list" shows them all.`);
  return { revoked: result === 'revoked' ? [id] : [], ...ended };
}

async function inspect({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const token = await readKey(positionals, context);
  const claims = findAccessKey(token)?.claims;
  if (claims === undefined) throw new CommandError('this is no access key: it is cut off, changed, or something else.');
  const verdict = await verifyHere(context, token);
  const refusal = verdict.counts ? null : verdict.refusal;
  const { terminal } = context;
  const said = whatItSays(claims);
  if (flags['json'] === true) terminal.print(JSON.stringify({ counts: verdict.counts, refusal, ...said }));
  else {
    terminal.print(refusal === null ? 'The key is valid.' : `The key is not valid: ${REFUSALS[refusal]}`);
    for (const [name, value] of Object.entries(said)) terminal.print(`${name.padEnd(12)} ${String(value ?? 'none')}`);
  }
  return verdict.counts ? 0 : 1;
}

/** @throws {UsageError} for anything but "-": an argument is there for every program of this machine to see */
export async function readKey(positionals: readonly string[], { terminal }: CommandContext): Promise<string> {
  if (positionals.length !== 1 || positionals[0] !== '-') {
    throw new UsageError('a key comes from standard input, never from the command line. Say "-".');
  }
  return (await terminal.read('The access key:')).trim();
}

export const REFUSALS: Readonly<Record<AccessKeyRefusal, string>> = {
  malformed: 'it is no access key: it is cut off, changed, or something else.',
  not_ours: 'it was not made here, or the identity is another one since.',
  forged: 'somebody else signed it.',
  revoked: 'it was revoked.',
  expired: 'it has expired.',
  device_bound: 'it is the grant of a paired device, and counts only inside that device’s sealed calls.',
};

/** Named as in the list of keys. */
function whatItSays({ kid, scope, issuer, label, issuedAtS, expiresAtS, confirmation }: AccessClaims) {
  return {
    id: kid,
    scope,
    issuer,
    label: label ?? null,
    device_bound: confirmation !== undefined,
    created_at: isoTimeOf(issuedAtS),
    expires_at: expiresAtS === undefined ? null : isoTimeOf(expiresAtS),
  };
}

function lifetimeS(flag: Flag): number | null | undefined {
  if (flag === undefined) return undefined;
  if (flag === 'never') return null;
  const seconds = findDurationS(flag);
  if (seconds !== undefined && seconds <= MAX_LIFETIME_S) return seconds;
  throw new UsageError('--expires: expected a time such as 30m, 12h or 90d, at most a hundred years, or "never".');
}

function labelOf(flag: Flag): string | undefined {
  if (flag === undefined || (typeof flag === 'string' && isLabel(flag))) return flag;
  throw new UsageError('--label: expected 1 to 64 characters that can be shown as they are.');
}

function forWhat({ agent_index: index, scope }: KeyResource): string {
  return index === null ? 'for every agent' : `for agent ${index} (${scope})`;
}

function untilWhen({ expires_at: end }: KeyResource): string {
  return end === null ? 'without an end' : `until ${localTime(end)}`;
}
