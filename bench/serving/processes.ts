/** The processes that are measured: the service as its users start it, and bare ones to compare with. */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Compiled to `dist/bench/serving/`. */
export const root = new URL('../../../', import.meta.url);
export const builtInModel = fileURLToPath(new URL('models/foundation/foundation.gguf', root));
const builtProgram = fileURLToPath(new URL('dist/postern/bin.js', root));

export interface Service {
  readonly port: number;
  readonly home: string;
  readonly process: ChildProcess;
  /** From the start of the process until it said that it serves. */
  readonly readyMs: number;
  stop(): Promise<void>;
}

interface ServiceOptions {
  readonly modelsDir?: string;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly program?: string;
}

/** `postern serve` in a home of its own, on a free port. */
export async function startService({
  modelsDir,
  settings = {},
  program = builtProgram,
}: ServiceOptions = {}): Promise<Service> {
  const home = await mkdtemp(join(tmpdir(), 'postern-bench-'));
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings), { mode: 0o600 });
  const startedAtMs = performance.now();
  const child = spawn(process.execPath, [program, 'serve', '--port', '0', '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      SVC_HOME: home,
      SVC_MODELS_DIR: modelsDir ?? join(home, 'models'),
      SVC_IDENTITY_STORE: 'vault',
    },
  });
  const [line] = await once(child.stdout, 'data');
  const readyMs = performance.now() - startedAtMs;
  const port = Number(/"url":"http:\/\/127\.0\.0\.1:(\d+)"/.exec(String(line))?.[1]);
  return {
    port,
    home,
    process: child,
    readyMs,
    async stop() {
      await end(child);
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** One of the programs beside this file, or beside its caller; ready when it has sent its first message. */
export async function startProgram(
  url: URL,
  args: readonly string[] = [],
): Promise<{ readonly process: ChildProcess; readonly first: unknown }> {
  const child = fork(fileURLToPath(url), args);
  const [first] = await once(child, 'message');
  return { process: child, first };
}

export async function end(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  child.kill('SIGKILL');
  await ended;
}
