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
    return {
      usedBytes: process.memoryUsage().heapUsed,
      sockets: queryObjects(Socket),
      requests: queryObjects(IncomingMessage),
      responses: queryObjects(ServerResponse),
    };
  };
  rmSync(path, { force: true });
  createServer((socket) => {
    socket.on('error', () => undefined);
    void look().then((seen) => socket.end(JSON.stringify(seen)));
  })
    .listen(path)
    .unref();
}
