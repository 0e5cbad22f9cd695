/** A stream that waits shows that it lives, in a way that its readers skip: here Ollama's own client, and raw bytes. */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { Ollama } from 'ollama';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { sendAnswer } from '../../../gateway/http/send-answer.ts';
import { eventStream } from '../../../gateway/wire/event-stream.ts';
import { encodeLine, ndjson } from '../../../gateway/wire/ndjson.ts';
import { rawConnection, rawRequest } from '../../support/raw-connection.ts';

const SILENCE_MS = 15_000;

/** Each line of the answer waits until the test lets it go. */
let next = Promise.withResolvers<void>();
let server: Server;
let port: number;

async function* answer(): AsyncGenerator<string> {
  for (const content of ['One', ' two', '']) {
    await next.promise;
    next = Promise.withResolvers();
    yield encodeLine({ model: 'm', message: { role: 'assistant', content }, done: content === '' });
  }
}

beforeAll(async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  server = createServer((request, response) => {
    const { headers } = request.url === '/api/chat' ? ndjson : eventStream;
    void sendAnswer(request, response, { status: 200, headers, body: answer() });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  port = (server.address() as { port: number }).port;
});
afterAll(() => {
  server.close();
  vi.useRealTimers();
});

/** Two silences, then the next line; the last one ends the answer. */
const advance = (): void => {
  vi.advanceTimersByTime(2 * SILENCE_MS);
  next.resolve();
};

const asSent = (piece: string): string => `${piece.length.toString(16)}\r\n${piece}\r\n`;

test.each([
  ['/api/chat', ' '],
  ['/v1/chat/completions', ': keep-alive\n\n'],
])('%s gets %j after each 15 seconds of silence', async (path, filler) => {
  const connection = await rawConnection(port);
  connection.socket.write(rawRequest({ path, headers: { connection: 'close' } }));
  await vi.waitUntil(() => vi.getTimerCount() === 1);
  advance();
  await connection.receives(/One/);
  expect(connection.text().split(asSent(filler))).toHaveLength(3);
  advance();
  await connection.receives(/two/);
  advance();
  expect(await connection.all()).toMatch(/0\r\n\r\n$/);
});

test('the status of a stream comes at once, however late its first piece', async () => {
  const connection = await rawConnection(port);
  connection.socket.write(rawRequest({ path: '/api/chat', headers: { connection: 'close' } }));
  expect(await connection.receives(/\r\n\r\n/)).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\n$/);
  connection.socket.destroy();
  // The next line is another test's.
  await vi.waitUntil(() => {
    next.resolve();
    return vi.getTimerCount() === 0;
  });
  next = Promise.withResolvers();
});

test('Ollama’s client reads every line of a stream that waits before each', async () => {
  const ollama = new Ollama({ host: `http://127.0.0.1:${port}` });
  const warnings = vi.spyOn(console, 'warn');
  const chat = ollama.chat({ model: 'm', stream: true, messages: [{ role: 'user', content: 'Count.' }] });
  await vi.waitUntil(() => vi.getTimerCount() === 1);
  advance();
  const contents: string[] = [];
  for await (const { message } of await chat) {
    contents.push(message.content);
    advance();
  }
  expect(contents).toEqual(['One', ' two', '']);
  expect(warnings).not.toHaveBeenCalled();
});
