/** The whole service inside the test's own process, so that the test can ask for approvals as a tool or a device would. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endService, startService, type Running } from '../../cli/service.ts';
import type { ApprovalWish, PendingApproval } from '../../core/approvals/approval-queue.ts';
import { resolveSettings } from '../../core/config/settings.ts';
import { runCli, type CliResult } from './server.ts';
import { silentTerminal } from './silent-terminal.ts';

export interface ApprovalsService {
  readonly home: string;
  readonly url: string;
  readonly running: Running;
  /** @throws where as many of this kind wait already as may */
  ask(wish?: Partial<ApprovalWish>): PendingApproval;
  /** Runs the command line of this service's owner. */
  cli(...args: string[]): Promise<CliResult>;
  stop(): Promise<void>;
}

export function temporaryHome(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'postern-approvals-'));
}

export async function startApprovalsService(home: string): Promise<ApprovalsService> {
  const environment = { SVC_IDENTITY_STORE: 'vault' };
  const { settings } = resolveSettings({
    flags: { 'server.port': 0, 'models.folder': join(home, 'no-models'), 'models.discover': false },
    environment,
    file: {},
  });
  const { signal: never } = new AbortController();
  const context = { home, terminal: silentTerminal, environment, stop: never, stopNow: never };
  const running = await startService(settings, context);
  // No yes is given before it can be told to the audit log.
  await running.identity.begin();
  let stopped: Promise<void> | undefined;
  return {
    home,
    url: `http://127.0.0.1:${running.port}`,
    running,
    ask(wish = {}) {
      const asked = running.approvals.request({
        kind: 'tool_permission',
        summary: 'run "ls"',
        lifetimeMs: 600_000,
        ...wish,
      });
      if (asked === undefined) throw new Error('too many wait');
      return asked;
    },
    cli: (...args) => runCli(args, { SVC_HOME: home }),
    stop: () => (stopped ??= endService(running, never)),
  };
}

export function removeHome(home: string): Promise<void> {
  return rm(home, { recursive: true, force: true });
}
