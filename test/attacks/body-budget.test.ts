/** Bodies that are held without end: many large ones at once, and those that stall. */
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startWatchedServer, type WatchedServer } from '../support/watched-server.ts';
import { until } from '../support/wait.ts';

const MIB = 1024 * 1024;
const BODY_BYTES = 32 * MIB;
const BODIES = 80;
/** The budget, one body more, what waits outside it, and the process itself; eighty bodies would be 2.5 GB. */
const MOST_MEMORY_BYTES = 1100 * MIB;

let server: WatchedServer;
const sockets: Socket[] = [];
beforeAll(async () => {
  server = await startWatchedServer();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await server?.stop();
});

/** A chat request of 32 MiB that is sent but for its last byte. */
function sendAlmostAll(): { readonly answer: () => string; readonly sent: () => number; readonly socket: Socket } {
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`;
  const start = '{"model":"foundation","messages":[{"role":"user","content":"';
  const socket = connect(server.port, '127.0.0.1');
  sockets.push(socket);
  let answer = '';
  socket.on('data', (data) => (answer += data.toString()));
  socket.on('error', () => undefined);
  socket.write(head + start);
  socket.write(Buffer.alloc(BODY_BYTES - start.length - 1, 'a'));
  return { answer: () => answer, sent: () => socket.bytesWritten - socket.writableLength, socket };
}

const status = (answer: string): string => answer.slice(9, 12);

describe('Many large bodies at once do not fill the memory', () => {
  test('eighty of 32 MiB: some are held, the others wait outside and are told to come back, and others are served', async () => {
    await server.observe();
    const all = Array.from({ length: BODIES }, sendAlmostAll);
    let asked = 0;
    await until(async () => {
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
      asked += 1;
      // The budget of one caller takes two or three of them; to the others it says so after half a minute.
      return all.filter(({ answer }) => answer() !== '').length >= BODIES - 4;
    });
    const { peakBytes } = await server.observe();
    expect(asked).toBeGreaterThan(1);
    expect(peakBytes).toBeLessThan(MOST_MEMORY_BYTES);
    const answers = all.map(({ answer }) => answer()).filter((answer) => answer !== '');
    expect(new Set(answers.map(status))).toEqual(new Set(['429']));
    for (const answer of answers) expect(answer.toLowerCase()).toContain('retry-after: 5');
    for (const { socket } of all) socket.destroy();
  });

  test('when their senders have left, a body of the same size is read', async () => {
    const { answer, socket } = sendAlmostAll();
    socket.write('"');
    await until(() => answer() !== '');
    expect(status(answer())).toBe('400');
    expect(answer()).toContain('not valid JSON');
  });
});

describe('A body that stalls ends', () => {
  test('with 408 in the style of its route and a closed connection, a minute after its last byte', async () => {
    const styles = [
      ['/v1/chat/completions', { error: { type: 'invalid_request_error' } }],
      ['/v1/messages', { type: 'error', error: { type: 'invalid_request_error' } }],
      ['/api/chat', { error: expect.any(String) as string }],
      ['/secure/call', { error: { type: 'invalid_request_error' } }],
    ] as const;
    await Promise.all(
      styles.map(async ([path, shape]) => {
        const socket = connect(server.port, '127.0.0.1');
        sockets.push(socket);
        let answer = '';
        let isClosed = false;
        socket.on('data', (data) => (answer += data.toString()));
        socket.on('close', () => (isClosed = true));
        socket.write(`POST ${path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"model":`);
        await until(() => isClosed);
        expect(status(answer)).toBe('408');
        expect(answer.toLowerCase()).toContain('connection: close');
        expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n')))).toMatchObject(shape);
      }),
    );
  });
});
