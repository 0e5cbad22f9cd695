/** The whole service inside the test's own process, for tests that are one of its parts' callers. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startService, type Service } from '../../service/service.ts';
import type { ServiceClock } from '../../service/start.ts';
import { resolveSettings } from '../../service/settings.ts';
import { untoldPeers } from '../../gateway/peer-process.ts';
import { runCli, type CliResult } from './server.ts';

export interface ServiceHere {
  readonly home: string;
  readonly url: string;
  readonly running: Service;
  /** Its log. */
  readonly said: readonly string[];
  /** Runs the command line of this service's owner. */
  cli(...args: string[]): Promise<CliResult>;
  /** @param now fires when answers under way may not go on any longer */
  stop(now?: AbortSignal): Promise<void>;
}

/** @returns it with its identity open: no yes is given before it can be told to the audit log */
export async function startServiceHere(
  home: string,
  flags: Readonly<Record<string, unknown>> = {},
  clock?: ServiceClock,
): Promise<ServiceHere> {
  const environment = { SVC_IDENTITY_STORE: 'vault' };
  const { settings } = resolveSettings({
    flags: { 'server.port': 0, 'models.folder': join(home, 'no-models'), 'models.discover': false, ...flags },
    environment,
    file: {},
  });
  const { signal: never } = new AbortController();
  // As the command line does, before anything is written.
  process.umask(0o077);
  // In a time that runs faster, clients give up before the system has said whose process they are.
  const fast = clock && { clock, openPeers: () => Promise.resolve(untoldPeers) };
  const said: string[] = [];
  const running = await startService(settings, { home, environment, say: (words) => said.push(words) }, fast);
  await running.identity.begin();
  let stopped: Promise<void> | undefined;
  return {
    home,
    url: `http://127.0.0.1:${running.port}`,
    running,
    said,
    cli: (...args) => runCli(args, { SVC_HOME: home }),
    stop: (now = never) => (stopped ??= running.stop(now)),
  };
}

export function temporaryHome(): Promise<string> {
  return mkdtemp(join(tmpdir(), 'postern-here-'));
}

export function removeHome(home: string): Promise<void> {
  return rm(home, { recursive: true, force: true });
}
