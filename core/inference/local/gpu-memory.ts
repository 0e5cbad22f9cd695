/**
 * How much memory a graphics card could take of a model, beyond the system's own. Only the engine knows, and asking it
 * costs a process; so it is asked only where there is a card at all.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { decodeFromRunner, type ToRunner } from './runner/protocol.ts';

/** What Linux has for cards of NVIDIA, of AMD's compute driver, and for any that can draw. */
const CARDS = ['/dev/nvidiactl', '/dev/kfd', '/dev/dri/renderD128'] as const;

/** A driver that hangs must not hang every load. */
const TIMEOUT_MS = 20_000;

/**
 * Bytes that are free on supported cards; 0 without one. A Mac's card shares the system's memory, which is counted
 * already.
 * @param runnerEntry the compiled `runner/main.js`
 */
export async function freeGpuBytes(runnerEntry: URL): Promise<number> {
  if (process.platform === 'darwin') return 0;
  if (process.platform === 'linux' && !CARDS.some((path) => existsSync(path))) return 0;
  const child = fork(runnerEntry, {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  try {
    const question: ToRunner = { type: 'probe' };
    child.send([question]);
    const [text = '[]']: string[] = await Promise.race([
      once(child, 'message', { signal: AbortSignal.timeout(TIMEOUT_MS) }),
      once(child, 'exit').then((): string[] => []),
    ]);
    const [answer] = decodeFromRunner(text);
    return answer?.type === 'probed' ? answer.freeGpuBytes : 0;
  } catch {
    // No answer in time, or no process: the system's memory is all that can be relied on.
    return 0;
  } finally {
    child.kill('SIGKILL');
  }
}
