/** Waits for what becomes of an invite, and asks its owner about the device that comes with it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isRecord } from '../core/json.ts';
import { printable } from '../core/printable.ts';
import { approvalEventSchema, type WireApproval, type WireApprovalEvent } from '../gateway/wire/admin/approvals.ts';
import { inviteStateSchema, type InviteResource, type InviteState } from '../gateway/wire/admin/pairings.ts';
import { CommandError, type CommandContext, type Terminal } from './command.ts';
import { UnansweredError, type LiveServer } from './live-server.ts';

const POLL_MS = 500;

/** @returns the invite as it ended; where the user ends the program, it is closed first */
export async function waitForDevice(
  server: LiveServer,
  invite: InviteResource,
  context: CommandContext,
): Promise<InviteState> {
  const ended = new AbortController();
  const signal = AbortSignal.any([ended.signal, context.stop]);
  const answering = invite.needs_approval ? answerQuestions(server, context.terminal, signal) : Promise.resolve();
  try {
    return await poll(server, invite, context.stop);
  } finally {
    ended.abort();
    await answering;
  }
}

async function poll(server: LiveServer, { id, expires_at }: InviteResource, stop: AbortSignal): Promise<InviteState> {
  try {
    for (;;) {
      // It may have been used before it is closed: what it is after that counts.
      if (stop.aborted) await server.ask('DELETE', `invites/${id}`);
      const invite = inviteStateSchema.parse(await server.ask('GET', `invites/${id}`));
      if (invite.state !== 'open') return invite;
      await sleep(POLL_MS, undefined, { signal: stop }).catch(() => undefined);
    }
  } catch (error) {
    if (error instanceof CommandError && !(error instanceof UnansweredError)) throw error;
    throw new CommandError(
      `the service has gone. When it is back, the invite is good until ${expires_at}; "postern invite close ${id}" ends it.`,
      { cause: error },
    );
  }
}

/** Until `signal` fires. Never rejects. */
async function answerQuestions(server: LiveServer, terminal: Terminal, signal: AbortSignal): Promise<void> {
  const asker = createAsker(server, terminal, signal);
  try {
    for await (const { name, data } of server.events('events', signal)) {
      const event = approvalEventSchema.safeParse(isRecord(data) ? { ...data, event: name } : undefined);
      if (event.success) asker.take(event.data);
    }
  } catch {
    // Whoever waits for the invite finds out by itself that the service has gone.
  }
  await asker.done();
}

interface Asker {
  take(event: WireApprovalEvent): void;
  done(): Promise<void>;
}

/** One question after the other; one that was settled elsewhere is taken away. */
function createAsker(server: LiveServer, terminal: Terminal, signal: AbortSignal): Asker {
  const waiting = new Map<string, AbortController>();
  let asked: Promise<void> = Promise.resolve();
  const add = (approval: WireApproval): void => {
    // One with a code is answered on the device.
    if (approval.kind !== 'pairing' || approval.code !== undefined || waiting.has(approval.id)) return;
    const settled = new AbortController();
    waiting.set(approval.id, settled);
    asked = asked.then(() =>
      askAbout(approval, { server, terminal, signal: AbortSignal.any([signal, settled.signal]) }),
    );
  };
  return {
    take(event) {
      if (event.event === 'approval.snapshot') event.approvals.forEach(add);
      else if (event.event === 'approval.added') add(event.approval);
      else waiting.get(event.approval.id)?.abort();
    },
    done: () => asked,
  };
}

interface Dialog {
  readonly server: LiveServer;
  readonly terminal: Terminal;
  /** Fires when no answer is needed any more. */
  readonly signal: AbortSignal;
}

async function askAbout({ id, summary }: WireApproval, { server, terminal, signal }: Dialog): Promise<void> {
  if (signal.aborted) return;
  const shown = printable(summary);
  if (terminal.ask === undefined) {
    return terminal.say(`${shown}\n"postern approve ${id}" says yes, "postern deny ${id}" no.`);
  }
  const decision = await decisionOf(terminal.ask, `${shown}\nPair it? [y/n] `, signal);
  if (decision === undefined) return;
  try {
    await server.ask('POST', `approvals/${id}`, { body: { decision } });
  } catch (error) {
    terminal.say(error instanceof CommandError ? error.message : 'the service has gone.');
  }
}

/** Asked until it is answered: a slip of the finger decides nothing. @returns undefined once `signal` fired */
async function decisionOf(
  ask: NonNullable<Terminal['ask']>,
  question: string,
  signal: AbortSignal,
): Promise<'approve' | 'deny' | undefined> {
  for (;;) {
    const answer = (await ask(question, signal)).trim();
    if (signal.aborted) return undefined;
    if (/^y(es)?$/i.test(answer)) return 'approve';
    if (/^no?$/i.test(answer)) return 'deny';
  }
}
