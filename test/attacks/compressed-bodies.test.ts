/** Little that is sent, and much that it unpacks to. */
import { createBrotliCompress, createGzip } from 'node:zlib';
import { buffer } from 'node:stream/consumers';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rawConnection } from '../support/raw-connection.ts';
import { until } from '../support/wait.ts';
import { startWatchedServer, type WatchedServer } from '../support/watched-server.ts';

const MIB = 1024 * 1024;
const BOMB_BYTES = 1024 * MIB;
const BODY_BYTES = 32 * MIB;
const CODINGS = ['gzip', 'br'];
/** Unpacked they would be 1.8 GB. */
const BODIES = 60;

let server: WatchedServer;
beforeAll(async () => {
  server = await startWatchedServer();
});
afterAll(() => server?.stop());

/** Blanks, which every JSON text may begin with. */
function* blanks(bytes: number): Generator<Buffer> {
  const piece = Buffer.alloc(MIB, ' ');
  for (let at = 0; at < bytes; at += piece.length) yield piece;
}

const packed = (coding: string, pieces: Iterable<Buffer>): Promise<Buffer> =>
  buffer(Readable.from(pieces).pipe(coding === 'br' ? createBrotliCompress({ params: { 1: 4 } }) : createGzip()));

const post = (coding: string, body: Buffer) =>
  fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body, headers: { 'content-encoding': coding } });

describe('A body of a megabyte or less unpacks to a gigabyte', () => {
  test.each(CODINGS)('%s: it is left off at 32 MiB with a 413, and takes no more memory than that', async (coding) => {
    const bomb = await packed(coding, blanks(BOMB_BYTES));
    expect(bomb.length).toBeLessThan(2 * MIB);
    await server.observe();
    const answers = await Promise.all(Array.from({ length: 4 }, () => post(coding, bomb)));
    expect(answers.map(({ status }) => status)).toEqual([413, 413, 413, 413]);
    expect((await server.observe()).peakBytes).toBeLessThan(400 * MIB);
  });

  test('where the route takes less, it is left off there', async () => {
    const body = await packed('gzip', blanks(MIB));
    const headers = { 'content-encoding': 'gzip' };
    expect((await fetch(`${server.url}/pair-invite`, { method: 'POST', body, headers })).status).toBe(413);
  });
});

describe('Many compressed bodies at once do not fill the memory', () => {
  test('what they unpack to counts, and what finds no room is told to come back', async () => {
    function* text(): Generator<Buffer> {
      yield Buffer.from('{"model":"foundation","messages":[{"role":"user","content":"');
      for (const piece of blanks(BODY_BYTES - 2 * MIB)) yield piece.fill('a');
    }
    const bodies = await Promise.all(CODINGS.map(async (coding) => [coding, await packed(coding, text())] as const));
    await server.observe();
    const all = await Promise.all(
      Array.from({ length: BODIES }, async (_, at) => {
        const [coding, body] = bodies[at % bodies.length]!;
        const connection = await rawConnection(server.port);
        const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-encoding: ${coding}\r\n`;
        connection.socket.write(`${head}content-length: ${body.length}\r\n\r\n`);
        // A byte is missing, so that each is held until its sender leaves.
        connection.socket.write(body.subarray(0, -1));
        return connection;
      }),
    );
    await until(async () => {
      expect((await fetch(`${server.url}/health`)).status).toBe(200);
      return all.filter((connection) => connection.text() !== '').length >= BODIES - 4;
    });
    const { peakBytes } = await server.observe();
    expect(peakBytes).toBeLessThan(1100 * MIB);
    const statuses = all.map((connection) => connection.text().slice(9, 12)).filter((status) => status !== '');
    expect(new Set(statuses)).toEqual(new Set(['429']));
    for (const { socket } of all) socket.destroy();
  });
});
