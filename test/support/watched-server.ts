/** A real server whose event loop and memory are watched from within. */
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { startServer, type TestServer } from './server.ts';

export interface WatchedServer extends TestServer {
  /** Since it was last asked. */
  observe(): Promise<Observation>;
}

interface Observation {
  /** The longest piece of work that its thread did without looking up, in CPU time. */
  readonly longestMs: number;
  /** The most memory that the process had. */
  readonly peakBytes: number;
}

export async function startWatchedServer(environment: Readonly<Record<string, string>> = {}): Promise<WatchedServer> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-probe-'));
  const path = join(folder, 'socket');
  const probe = new URL('loop-probe.mjs', import.meta.url).href;
  const server = await startServer({
    environment: { ...environment, NODE_OPTIONS: `--import ${probe}`, SVC_TEST_LOOP_PROBE: path },
  });
  return {
    ...server,
    observe: async () => JSON.parse(await text(connect(path))) as Observation,
    stop: async () => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
