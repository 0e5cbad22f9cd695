/**
 * Loaded into a process before its own program: tells whoever connects what is still reachable there, after as thorough
 * a collection as there is.
 */
import { rmSync } from 'node:fs';
import { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, Socket } from 'node:net';
import { queryObjects, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const path = process.env.SVC_TEST_HEAP_PROBE;

if (path !== undefined) {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  const look = async () => {
    // What finalizers let go of is collected the next time.
    for (let round = 0; round < 3; round++) {
      collect();
      await new Promise(setImmediate);
    }
    // These collect even more, and have V8 give back what it no longer needs.
    const objects = [Socket, IncomingMessage, ServerResponse].reduce((sum, one) => sum + queryObjects(one), 0);
    const { heapUsed, rss } = process.memoryUsage();
    return { objects, heapBytes: heapUsed, residentBytes: rss };
  };
  rmSync(path, { force: true });
  createServer((socket) => {
    socket.on('error', () => undefined);
    void look().then((seen) => socket.end(JSON.stringify(seen)));
  })
    .listen(path)
    .unref();
}
