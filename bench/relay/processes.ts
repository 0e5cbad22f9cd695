/** The processes of the relay's bench, each with as many open files as the machine allows. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Compiled to `dist/bench/relay/`. */
export const relayProgram = fileURLToPath(new URL('../../relay/main.js', import.meta.url));
export const gatewaysProgram = fileURLToPath(new URL('gateways-program.js', import.meta.url));
export const forwarderProgram = fileURLToPath(new URL('bare-forwarder.js', import.meta.url));

export interface Program {
  readonly process: ChildProcess;
  readonly lines: Interface;
  /** The first line, parsed. */
  readonly first: unknown;
  /** Bytes of memory that are its own. */
  residentBytes(): Promise<number>;
  kill(): Promise<void>;
}

export async function start(program: string, args: readonly string[]): Promise<Program> {
  const raise = 'ulimit -n "$(ulimit -Hn)" && exec "$0" "$@"';
  const child = spawn('bash', ['-c', raise, process.execPath, program, ...args], {
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = await once(lines, 'line');
  return {
    process: child,
    lines,
    first: JSON.parse(String(line)),
    residentBytes: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
      return Number(/VmRSS:\s+(\d+) kB/u.exec(status)?.[1]) * 1024;
    },
    kill: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** A relay without the limits that would be what is measured. */
export function startRelayProgram(port = 0): Promise<Program> {
  const limits = ['unauthenticatedPerAddress=0', 'bytesPerSecond=0'];
  return start(relayProgram, ['--listen', `127.0.0.1:${port}`, ...limits.flatMap((limit) => ['--limit', limit])]);
}
