/** `postern approve` and `postern deny`: the owner's word. */
import { printable } from '../../core/printable.ts';
import type { WireApproval } from '../../gateway/wire/admin/approvals.ts';
import { readApprovals } from './approvals.ts';
import { CommandError, UsageError, type Command, type CommandInput } from '../command.ts';
import { requireLiveServer } from '../live-server.ts';

export const approve = decider('approve', {
  summary: 'approve a pending request',
  done: 'Approved',
  note: 'A device is not approved here: type its code on it.',
});

export const deny = decider('deny', {
  summary: 'say no to what "approvals" shows',
  done: 'Denied',
  note: 'What you do not decide in time is denied by itself.',
});

interface Words {
  readonly summary: string;
  readonly done: string;
  readonly note: string;
}

function decider(decision: 'approve' | 'deny', { summary, done, note }: Words): Command {
  return {
    name: decision,
    summary,
    usage: `Usage: postern ${decision} ID

The first few characters of the ID will do, as long as no other begins with them. ${note}
Exit code 1 where nothing with this ID waits, or it was settled before.

Example:
  postern ${decision} 3f9a
`,
    options: {},
    async run(input, { terminal, home }) {
      const given = idOf(input, decision);
      const server = await requireLiveServer(home);
      const found = findByPrefix(await readApprovals(server), given);
      // What does not wait the server may still know: how it was settled.
      await server.ask('POST', `approvals/${found?.id ?? given}`, { body: { decision } });
      terminal.say(`${done}: ${printable(found?.summary ?? given)}`);
      return 0;
    },
  };
}

function idOf({ positionals: [id, ...rest] }: CommandInput, decision: string): string {
  if (id === undefined || rest.length > 0) throw new UsageError(`say which one: "${decision} ID".`);
  if (!/^[\w-]{1,64}$/.test(id)) throw new UsageError('this is no ID. "postern approvals" shows what waits.');
  return id;
}

/** @throws {CommandError} where several begin with it */
function findByPrefix(waiting: readonly WireApproval[], prefix: string): WireApproval | undefined {
  const found = waiting.filter(({ id }) => id.startsWith(prefix));
  const exact = found.find(({ id }) => id === prefix);
  if (exact === undefined && found.length > 1) {
    throw new CommandError(`${found.length} begin with "${prefix}". Give more of the ID: "postern approvals".`);
  }
  return exact ?? found[0];
}
