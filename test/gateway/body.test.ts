/** A short body, read in one piece from a real socket. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { ANSWERED_SILENCE_MS, answerEarly, bodyPieces, SILENT_BODY_MS, shortBody } from '../../gateway/body.ts';
import { createFakeTime } from '../core/fake-time.ts';

async function arrive(head: string): Promise<{ client: Socket; request: IncomingMessage }> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  client.write(`POST / HTTP/1.1\r\nhost: a\r\n${head}`);
  const [request] = (await once(server, 'request')) as [IncomingMessage];
  return { client, request };
}

test('comes whole, however it was cut', async () => {
  const time = createFakeTime();
  const { client, request } = await arrive('content-length: 6\r\n\r\nab');
  const body = shortBody(request, time);
  await once(request, 'data');
  client.write('cd');
  await once(request, 'data');
  client.write('ef');
  expect(Buffer.from(await body).toString()).toBe('abcdef');
  time.advance(2 * SILENT_BODY_MS);
});

test('is waited for as long as something comes, and no longer', async () => {
  const time = createFakeTime();
  const { client, request } = await arrive('content-length: 6\r\n\r\nab');
  const body = shortBody(request, time);
  await once(request, 'data');
  time.advance(SILENT_BODY_MS - 1);
  client.write('cd');
  await once(request, 'data');
  time.advance(SILENT_BODY_MS - 1);
  client.write('e');
  await once(request, 'data');
  time.advance(SILENT_BODY_MS);
  await expect(body).rejects.toMatchObject({ code: 'request_timeout' });
});

test('is cut off with its client, before or after it is asked for', async () => {
  const time = createFakeTime();
  const { client, request } = await arrive('content-length: 6\r\n\r\nab');
  const body = shortBody(request, time);
  await once(request, 'data');
  client.destroy();
  await expect(body).rejects.toMatchObject({ code: 'bad_request' });
  await expect(shortBody(request, time)).rejects.toMatchObject({ code: 'bad_request' });
});

test('a sender that is answered may go on, but does not hold its connection by silence', async () => {
  const time = createFakeTime();
  const { client, request } = await arrive('content-length: 1000\r\n\r\nab');
  const answer = answerEarly('no', request, time.setTimer);
  expect(await answer.next()).toEqual({ value: 'no', done: false });
  const over = answer.next();
  await once(request, 'data');
  time.advance(ANSWERED_SILENCE_MS - 1);
  client.write('cd');
  await once(request, 'data');
  time.advance(ANSWERED_SILENCE_MS - 1);
  expect(request.destroyed).toBe(false);
  time.advance(1);
  expect(request.destroyed).toBe(true);
  expect((await over).done).toBe(true);
});

test('what a reader left off in the middle is read to its end after the answer', async () => {
  const time = createFakeTime();
  const { client, request } = await arrive('content-length: 6\r\n\r\nab');
  const pieces = bodyPieces(request, { ...time, maxBytes: 6 });
  expect((await pieces.next()).value?.toString()).toBe('ab');
  void pieces.next();
  const answer = answerEarly('no', request, time.setTimer);
  await answer.next();
  const over = answer.next();
  client.write('cd');
  await once(request, 'data');
  client.write('ef');
  expect((await over).done).toBe(true);
  expect(request.complete).toBe(true);
});
