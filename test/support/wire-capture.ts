/** Whoever listens on a machine's cable: every packet from the beginning to the end of a test, whole. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Machine } from './network.ts';
import { readTcpStreams } from './pcap.ts';
import { until } from './wait.ts';

export interface WireCapture {
  /** Ends when `last` was heard, in the clear. @returns the file and each direction of each connection in it */
  end(last: string): Promise<readonly Buffer[]>;
}

export async function listenOnWire({ within, device }: Machine): Promise<WireCapture> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-wire-'));
  const file = join(folder, 'capture');
  // As it comes (-U), whole (-s 0), with room for bursts (-B, KiB), and as the owner of the folder (-Z).
  const options = ['-i', device, '-w', file, '-U', '--immediate-mode', '-s', '0', '-B', '65536', '-Z', 'root'];
  const [command, ...args] = [...within, 'tcpdump', ...options];
  const child = spawn(command!, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let words = '';
  child.stderr.on('data', (chunk: Buffer) => (words += chunk.toString()));
  await until(() => {
    if (child.exitCode !== null) throw new Error(words);
    return words.includes('listening on');
  });
  return {
    async end(last) {
      try {
        await until(async () => (await readFile(file)).includes(last));
        const ended = once(child, 'close');
        child.kill('SIGINT');
        await ended;
        if (!/^0 packets dropped by kernel/m.test(words)) throw new Error(`not all was heard:\n${words}`);
        return [await readFile(file), ...(await readTcpStreams(file)).values()];
      } finally {
        child.kill('SIGKILL');
        await rm(folder, { recursive: true });
      }
    },
  };
}
