/** `postern approvals`: what waits for the owner's word, and what becomes of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../../core/json.ts';
import { printable } from '../../core/printable.ts';
import {
  approvalEventSchema,
  approvalListSchema,
  type WireApproval,
  type WireApprovalEvent,
} from '../../gateway/wire/admin/approvals.ts';
import { noun, refuseMore } from '../actions.ts';
import {
  CommandError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
  type Terminal,
} from '../command.ts';
import { findLiveServer, requireLiveServer, type LiveServer } from '../live-server.ts';

/** How often a server that went away is looked for. */
const POLL_MS = 250;

export const approvals: Command = noun({
  name: 'approvals',
  summary: 'show requests that await your approval',
  usage: `Usage: postern approvals [list] [--watch] [--json]

Shows what waits for you: a device that wants to be paired, a tool that wants to run, money that would be spent, a
change of the configuration that is a risk. "postern approve ID" and "postern deny ID" decide; the first few characters
of an ID will do. What you do not decide in time is denied.

A device shows no ID but asks for a code: type the one that stands here on the device, if it is yours.

  -w, --watch   go on with each as it comes and as it ends, until Ctrl-C; waits for a service that restarts
  --json        JSON on stdout; with --watch one object a line

Example:
  postern approvals --watch
`,
  options: { watch: { type: 'boolean', short: 'w' }, json: { type: 'boolean' } },
  actions: { list: { options: ['watch', 'json'], run: listOrWatch } },
  usual: 'list',
});

async function listOrWatch({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const asJson = flags['json'] === true;
  const server = await requireLiveServer(context.home);
  if (flags['watch'] === true) {
    const tell = asJson ? tellJson(context.terminal) : createTeller(context.terminal);
    await watch(server, tell, context);
  } else list(await readApprovals(server), asJson, context.terminal);
  return 0;
}

export async function readApprovals(server: LiveServer): Promise<readonly WireApproval[]> {
  const answer = approvalListSchema.safeParse(await server.ask('GET', 'approvals'));
  if (!answer.success) throw otherVersion();
  return answer.data.approvals;
}

function otherVersion(): CommandError {
  return new CommandError('the service that runs is of another version. Restart it: "postern stop", then serve.');
}

function list(waiting: readonly WireApproval[], asJson: boolean, terminal: Terminal): void {
  if (asJson) return terminal.print(JSON.stringify(waiting));
  if (waiting.length === 0) return terminal.say('Nothing waits.');
  for (const approval of waiting) terminal.print(shown(approval));
}

function shown({ id, kind, summary, expires_at: until, code }: WireApproval): string {
  const line = `${printable(id)}  ${KINDS[kind] ?? printable(kind)}  until ${clockTime(until)}  ${printable(summary)}`;
  return code === undefined ? line : `${line}\n${codeBlock(code)}`;
}

const KINDS: Readonly<Record<string, string>> = {
  pairing: 'pairing',
  tool_permission: 'tool',
  spend: 'spend',
  high_risk_config: 'config',
};

/** Spaced, and with air around it: it is read from this screen and typed on another. */
function codeBlock(code: string): string {
  const spaced = Array.from(printable(code)).join(' ');
  const bar = '─'.repeat(spaced.length + 6);
  return [
    '',
    `    ┌${bar}┐`,
    `    │   ${spaced}   │`,
    `    └${bar}┘`,
    '    Type this code on the device, if it is yours. If it is not: "postern deny" and the ID.',
    '',
  ].join('\n');
}

/** As the clock on the wall shows it. */
function clockTime(time: string): string {
  return new Date(time).toLocaleTimeString('sv-SE');
}

type Tell = (event: WireApprovalEvent) => void;

function tellJson(terminal: Terminal): Tell {
  return (event) => terminal.print(JSON.stringify(event));
}

/** Remembers what it showed: after a restart the service says anew what waits, and nothing of what went meanwhile. */
function createTeller(terminal: Terminal): Tell {
  const waiting = new Map<string, WireApproval>();
  const add = (approval: WireApproval): void => {
    if (waiting.has(approval.id)) return;
    waiting.set(approval.id, approval);
    terminal.print(shown(approval));
  };
  const settle = ({ id, summary }: WireApproval, outcome: string): void => {
    waiting.delete(id);
    terminal.print(`${printable(id)}  ${outcome}  ${printable(summary)}`);
  };
  return (told) => {
    if (told.event === 'approval.added') return add(told.approval);
    if (told.event === 'approval.settled') return settle(told.approval, told.outcome);
    const ids = new Set(told.approvals.map(({ id }) => id));
    for (const gone of [...waiting.values()].filter(({ id }) => !ids.has(id))) settle(gone, 'waits no more');
    told.approvals.forEach(add);
  };
}

async function watch(first: LiveServer, tell: Tell, { home, terminal, stop }: CommandContext): Promise<void> {
  terminal.say('Watching. Ctrl-C ends it.');
  for (let server: LiveServer | undefined = first; server !== undefined; server = await nextServer(home, stop)) {
    await follow(server, tell, stop);
    if (!stop.aborted) terminal.say('The service has gone. Waiting for it to come back ...');
  }
}

/** Until the connection ends, whoever ends it. */
async function follow(server: LiveServer, tell: Tell, stop: AbortSignal): Promise<void> {
  try {
    for await (const { name, data } of server.events('events', stop)) {
      const event = approvalEventSchema.safeParse(isRecord(data) ? { ...data, event: name } : undefined);
      if (event.success) tell(event.data);
    }
  } catch (error) {
    if (!stop.aborted && !(error instanceof TypeError)) throw error;
  }
}

/** @returns undefined once the user has asked to end */
async function nextServer(home: string, stop: AbortSignal): Promise<LiveServer | undefined> {
  while (!stop.aborted) {
    await sleep(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
    const server = await findLiveServer(home);
    if (server !== undefined && !stop.aborted) return server;
  }
  return undefined;
}
