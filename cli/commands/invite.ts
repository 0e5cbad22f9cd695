/** `postern invite`: shows a device what it needs to be paired, and waits for it. */
import { writeFile } from 'node:fs/promises';
import { existsSync } from 'node:fs';
import * as z from 'zod';
import { MAX_INVITE_LIFETIME_S, MIN_INVITE_LIFETIME_S } from '../../identity/node/invite-registry.ts';
import {
  inviteResourceSchema,
  madeInviteSchema,
  type InviteResource,
  type InviteState,
  type MadeInvite,
} from '../../gateway/wire/admin/pairings.ts';
import { noun, refuseMore } from '../actions.ts';
import {
  CommandError,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';
import { deviceText, pathText } from './devices.ts';
import { agentIndexOf, findDurationS, type Flag } from '../flags.ts';
import { waitForDevice } from '../invite-wait.ts';
import { requireLiveServer, type LiveServer } from '../live-server.ts';
import { unwritable } from '../unwritable.ts';
import { localMinute, localTime } from '../local-time.ts';
import type { Cell } from '../table.ts';
import { printList } from '../print-list.ts';

export const invite: Command = noun({
  name: 'invite',
  summary: 'pair a device with this machine',
  usage: `Usage: postern invite [--agent N] [--expires 10m] [--approve] [--bearer] [--png FILE] [--json]
       postern invite list [--json]
       postern invite close ID

Shows a QR code, and the same as text, that pairs one device with this machine; then waits for the device and says which
one came. Whoever has the code can use it, once: show it to nobody else. Ctrl-C closes it. The service has to run.

  list               the invites of the last day, and what became of them
  close              no device can use it any more

  --agent N          the device may use this agent only; without it, every agent
  --expires TIME     1m to 1h (default 10m)
  --approve          you are asked again when a device comes
  --bearer           also makes a plain access key, for clients on the device that can't use the sealed channel
  --png FILE         also writes the code as a picture, for your eyes only; never over a file that is there
  --json             one JSON object a line: the invite, then what became of it

If stdout is not a terminal, only the text of the code is printed.

Example:
  postern invite --approve
`,
  options: {
    agent: { type: 'string' },
    expires: { type: 'string' },
    approve: { type: 'boolean' },
    bearer: { type: 'boolean' },
    png: { type: 'string' },
    json: { type: 'boolean' },
  },
  actions: { list: { options: ['json'], run: list }, close: { options: [], run: close } },
  usual: { options: ['agent', 'expires', 'approve', 'bearer', 'png', 'json'], run: pairOne },
});

async function pairOne({ flags }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const { home, terminal } = context;
  const body = {
    agent_index: agentIndexOf(flags['agent']),
    expires_in_seconds: lifetimeS(flags['expires']),
    needs_approval: flags['approve'] === true,
    bearer: flags['bearer'] === true,
  };
  const png = newFile(flags['png']);
  const server = await requireLiveServer(home);
  const made = madeInviteSchema.parse(await server.ask('POST', 'invites', { body }));
  await closingOnFailure(server, made, async () => {
    if (png !== undefined) await writePicture(png, made, context);
    if (flags['json'] === true) terminal.print(JSON.stringify(made));
    else await show(made, context);
  });
  const ended = await waitForDevice(server, made, context);
  if (flags['json'] === true) terminal.print(JSON.stringify(outcomeOf(ended)));
  terminal.say(OUTCOMES[ended.state](ended));
  return ended.state === 'used' ? 0 : 1;
}

function lifetimeS(flag: Flag): number | undefined {
  if (flag === undefined) return undefined;
  const seconds = findDurationS(flag);
  if (seconds !== undefined && seconds >= MIN_INVITE_LIFETIME_S && seconds <= MAX_INVITE_LIFETIME_S) return seconds;
  throw new UsageError('--expires: expected a time from 1m to 1h, such as 10m.');
}

/** Looked at before there is an invite that would have to be closed again. */
function newFile(flag: Flag): string | undefined {
  if (typeof flag !== 'string') return undefined;
  if (flag === '') throw new UsageError('--png: expected the name of a file.');
  if (existsSync(flag)) throw new CommandError(`${flag} is there already. Name another file, or remove that one.`);
  return flag;
}

/** Nobody has seen it then. */
async function closingOnFailure(server: LiveServer, { id }: InviteResource, use: () => Promise<void>): Promise<void> {
  try {
    await use();
  } catch (error) {
    await server.ask('DELETE', `invites/${id}`);
    throw error;
  }
}

async function writePicture(path: string, { code }: MadeInvite, { terminal }: CommandContext): Promise<void> {
  const { qrCodePng } = await import('../qr-code.ts');
  try {
    await writeFile(path, await qrCodePng(code), { mode: 0o600, flag: 'wx' });
  } catch (cause) {
    throw unwritable(path, cause);
  }
  terminal.say(`The code is in ${path}. Remove the picture when the device is paired.`);
}

async function show(made: MadeInvite, { terminal }: CommandContext): Promise<void> {
  if (terminal.draw !== undefined) {
    const { qrCodeRows } = await import('../qr-code.ts');
    if (!terminal.draw(await qrCodeRows(made.code))) {
      terminal.say('This window is too narrow for the QR code. Widen it and try again, or take the text.');
    }
  }
  terminal.print(made.code);
  // A program that reads the text wants nothing else, and the words of this command may go to a log.
  if (made.link !== undefined && terminal.isInteractive) terminal.print(made.link);
  terminal.say(wordsAbout(made));
}

function wordsAbout(made: MadeInvite): string {
  const scope = made.agent_index === null ? 'every agent' : `agent ${made.agent_index}`;
  const lines = [
    `Pairs one device with ${made.gateway_name}, for ${scope}, until ${localMinute(Date.parse(made.expires_at))}.`,
    `Its fingerprint, to compare on the device:  ${made.gateway_id}`,
    ...placesOf(made),
    made.needs_approval
      ? 'You are asked when a device comes. Ctrl-C closes the invite.'
      : 'Waiting for the device. Ctrl-C closes the invite.',
  ];
  return lines.join('\n');
}

const HERE_ONLY =
  'The service listens on this machine only: no other device can reach it. Start it with "postern serve --expose".';

function placesOf(made: MadeInvite): readonly string[] {
  const { urls, relay } = made;
  const near =
    urls.length === 0 ? [] : [isHereOnly(made) ? HERE_ONLY : `The device looks for it at ${urls.join(', ')}`];
  if (relay === null) return near;
  const words = relay.state === 'connected' ? 'From anywhere' : 'When the relay is connected, which it is not now';
  return [...near, `${words}: through ${relay.origin}`];
}

function isHereOnly({ urls }: MadeInvite): boolean {
  return urls.every((url) => URL.canParse(url) && new URL(url).hostname === '127.0.0.1');
}

function outcomeOf({ state, device }: InviteState): object {
  return { outcome: state === 'used' ? 'paired' : state, device };
}

const OUTCOMES: Readonly<Record<InviteState['state'], (ended: InviteState) => string>> = {
  used: ({ device }) =>
    device === null
      ? 'Paired.'
      : `Paired: ${deviceText(device)}${pathText(device)}. "postern devices revoke ${device.id}" takes that back.`,
  expired: () => 'The invite has expired. No device was paired.',
  closed: () => 'The invite is closed: no device can use it.',
  open: () => 'The invite is still open.',
};

const listSchema = z.object({ invites: z.array(inviteResourceSchema) });

async function list({ flags, positionals }: CommandInput, { home, terminal }: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const server = await requireLiveServer(home);
  const { invites } = listSchema.parse(await server.ask('GET', 'invites'));
  printList(terminal, invites, {
    asJson: flags['json'] === true,
    heads: ['ID', 'STATE', 'FOR', 'UNTIL', 'DEVICE'],
    cells: cellsOf,
    hint: 'There was no invite in the last day. "postern invite" makes one.',
  });
  return 0;
}

function cellsOf({
  id,
  state,
  expires_at: end,
  agent_index: agent,
  device_id: device,
}: InviteResource): readonly Cell[] {
  const scope = agent === null ? 'every agent' : `agent ${agent}`;
  return [id, { text: state, style: state === 'open' ? 'good' : 'faint' }, scope, localTime(end), device ?? ''];
}

const closedSchema = z.object({ closed: z.boolean(), state: z.string() });

async function close({ positionals }: CommandInput, { home, terminal }: CommandContext): Promise<ExitCode> {
  const [id = '', ...more] = positionals;
  refuseMore(more);
  // Whoever pastes the code itself is not told it back.
  if (!/^[0-9a-f]{32}$/.test(id)) {
    throw new UsageError('an id is 32 hexadecimal digits; "postern invite list" shows them.');
  }
  const server = await requireLiveServer(home);
  const { closed, state } = closedSchema.parse(await server.ask('DELETE', `invites/${id}`));
  if (state === 'used') throw new CommandError('a device has used it: "postern devices" shows it, and can revoke it.');
  terminal.say(closed ? 'Closed: no device can use it.' : `It was ${state} already.`);
  return 0;
}
