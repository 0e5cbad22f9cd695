/** A real server for end-to-end tests: the compiled program in a home of its own, on a free port. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** As `npm test` built it, so that a start costs no build. */
export const cliPath = new URL('../../dist/postern/bin.js', import.meta.url).pathname;

export interface TestServer {
  readonly url: string;
  readonly port: number;
  readonly home: string;
  readonly process: ChildProcess;
  /** What the server wrote to stderr so far. */
  log(): string;
  /** Reads the token of this run, as the owner may. */
  runToken(): Promise<string>;
  stop(): Promise<void>;
}

interface StartOptions {
  readonly args?: readonly string[];
  readonly home?: string;
  readonly modelsDir?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The program, if not the compiled command line. */
  readonly program?: readonly string[];
  /** A command that runs the program somewhere else, such as in another network namespace. */
  readonly within?: readonly string[];
  /** The Node that runs it, if not this one. */
  readonly node?: string;
}

export async function startServer({
  args = [],
  home,
  modelsDir,
  environment = {},
  within = [],
  node = process.execPath,
  program = [cliPath, 'serve'],
}: StartOptions = {}): Promise<TestServer> {
  const ownHome = home ?? (await mkdtemp(join(tmpdir(), 'postern-home-')));
  const command = [...within, node, ...program, '--port', '0', '--json', ...args];
  const child = spawn(command[0]!, command.slice(1), {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      SVC_HOME: ownHome,
      SVC_MODELS_DIR: modelsDir ?? join(ownHome, 'no-models'),
      // The models of whoever runs the tests are none of their business.
      HOME: ownHome,
      OLLAMA_MODELS: join(ownHome, 'no-models'),
      ...NO_KEYRING,
      ...environment,
    },
  });
  let log = '';
  child.stderr.on('data', (chunk: Buffer) => (log += chunk.toString()));
  const lines = createInterface({ input: child.stdout });
  const ready = await Promise.race([
    once(lines, 'line').then(([line]) => JSON.parse(String(line)) as { url: string }),
    once(child, 'exit').then(([code]) => Promise.reject(new Error(`the server ended with ${String(code)}:\n${log}`))),
  ]);
  return {
    url: ready.url,
    port: Number(new URL(ready.url).port),
    home: ownHome,
    process: child,
    log: () => log,
    runToken: async () => (JSON.parse(await readFile(join(ownHome, 'run.json'), 'utf8')) as { token: string }).token,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const ended = once(child, 'exit');
        child.kill('SIGTERM');
        await ended;
      }
      if (home === undefined) await rm(ownHome, { recursive: true, force: true });
    },
  };
}

/** A test leaves nothing in the credential store of whoever runs it. */
const NO_KEYRING = { SVC_IDENTITY_STORE: 'vault' };

/** Runs one command of the command line to its end. @param input what is piped into it */
export async function runCli(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input = '',
): Promise<CliResult> {
  const child = spawn(process.execPath, [cliPath, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ...NO_KEYRING, ...environment },
  });
  // A command that does not read may have ended by now.
  child.stdin.on('error', () => undefined).end(input);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, stdout, stderr };
}

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}
