/**
 * Loaded into a process before its own program: measures how long its thread works without looking up, in CPU time, so
 * that a machine that is busy with something else does not count. Tells it to whoever connects, and begins anew.
 */
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';

const path = process.env.SVC_TEST_LOOP_PROBE;

if (path !== undefined) {
  let longestMs = 0;
  let peakBytes = 0;
  const cpuMs = () => {
    const { user, system } = process.threadCpuUsage();
    return (user + system) / 1000;
  };
  let before = cpuMs();
  const look = () => {
    const now = cpuMs();
    longestMs = Math.max(longestMs, now - before);
    peakBytes = Math.max(peakBytes, process.memoryUsage.rss());
    before = now;
    setTimeout(look, 1).unref();
  };
  look();
  rmSync(path, { force: true });
  createServer((socket) => {
    socket.on('error', () => undefined).end(JSON.stringify({ longestMs, peakBytes }));
    longestMs = 0;
    peakBytes = 0;
  })
    .listen(path)
    .unref();
}
