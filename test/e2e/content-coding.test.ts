/** Bodies that come compressed, or in another charset than UTF-8. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askForInvite } from '../support/invites.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { question, STYLES } from '../support/wire-styles.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server?.stop());

const CODINGS: readonly (readonly [string, (text: string) => Buffer])[] = [
  ['gzip', gzipSync],
  ['X-GZIP', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['identity', (text) => Buffer.from(text)],
];

const chat = { model: 'foundation', messages: [{ role: 'user', content: question }] };

interface Sent {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

async function send(
  path: string,
  body: Buffer | ReadableStream,
  headers: Record<string, string>,
  { url }: Pick<TestServer, 'url'> = server,
): Promise<Sent> {
  const init = { method: 'POST', body, headers, duplex: 'half' };
  const answer = await fetch(url + path, init as unknown as RequestInit);
  return { status: answer.status, headers: answer.headers, text: await answer.text() };
}

describe.each(Object.entries(STYLES))('%s', (_, { path, ask }) => {
  const text = JSON.stringify({ model: 'foundation', ...ask });
  test.each(CODINGS)('%s is read', async (coding, pack) => {
    const { status, text: answer } = await send(path, pack(text), { 'content-encoding': coding });
    expect([status, answer]).toEqual([200, expect.stringContaining('Paris')]);
  });
});

test('a long one is read as it comes, in pieces of any size', async () => {
  const packed = gzipSync(JSON.stringify({ ...chat, ignored: 'Lorem ipsum '.repeat(100_000) }));
  const pieces = ReadableStream.from(Array.from(packed, (_, at) => packed.subarray(at, at + 1)));
  expect(await send('/v1/chat/completions', pieces, { 'content-encoding': 'gzip' })).toMatchObject({ status: 200 });
});

test.each([
  ['zstd', zstdCompressSync(JSON.stringify(chat))],
  ['gzip, br', Buffer.from('{}')],
  ['nonsense', Buffer.from('{}')],
])('%s is a 415 that says what is read', async (coding, body) => {
  const { status, headers, text } = await send('/v1/chat/completions', body, { 'content-encoding': coding });
  expect([status, headers.get('accept-encoding')]).toEqual([415, 'gzip, deflate, br']);
  expect(JSON.parse(text)).toMatchObject({ error: { message: expect.stringContaining('gzip, deflate, br') } });
});

describe('what does not unpack is a 400 that says so', () => {
  test.each([
    ['gzip', 'is none', Buffer.from(JSON.stringify(chat))],
    ['deflate', 'is none', Buffer.from(JSON.stringify(chat))],
    ['br', 'is none', Buffer.from(JSON.stringify(chat))],
    ['gzip', 'is cut off', gzipSync(JSON.stringify(chat)).subarray(0, -3)],
    ['br', 'is cut off', brotliCompressSync(JSON.stringify(chat)).subarray(0, -3)],
  ])('%s that %s', async (coding, _, body) => {
    const { status, text } = await send('/v1/chat/completions', body, { 'content-encoding': coding });
    expect([status, JSON.parse(text)]).toEqual([
      400,
      { error: expect.objectContaining({ message: expect.stringContaining(`not valid ${coding}`) }) },
    ]);
  });
});

test('a stranger’s body is not unpacked', async () => {
  const headers = { 'content-encoding': 'gzip', via: '1.1 proxy' };
  expect((await send('/v1/chat/completions', Buffer.from('no gzip'), headers)).status).toBe(401);
});

test('a paired laptop’s programs send them, too', async () => {
  const home = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
  await runCli(['pair', '-'], { SVC_HOME: home }, await askForInvite(server));
  const laptop = await startServer({ home, program: [cliPath, 'connect'] });
  try {
    const headers = { 'content-encoding': 'gzip' };
    const { status, text } = await send('/v1/chat/completions', gzipSync(JSON.stringify(chat)), headers, laptop);
    expect([status, text]).toEqual([200, expect.stringContaining('Paris')]);
  } finally {
    await laptop.stop();
    await rm(home, { recursive: true, force: true });
  }
});

describe('charsets', () => {
  const body = Buffer.from(JSON.stringify(chat));
  test.each(['utf-8', 'UTF8', '"utf-8"', 'us-ascii'])('%s is read', async (charset) => {
    const headers = { 'content-type': `application/json; charset=${charset}` };
    expect((await send('/v1/chat/completions', body, headers)).status).toBe(200);
  });

  test.each(['utf-16', 'iso-8859-1', '"windows-1252"'])('%s is a 415 that asks for UTF-8', async (charset) => {
    const headers = { 'content-type': `application/json; v="1"; Charset=${charset}` };
    const { status, text } = await send('/v1/chat/completions', body, headers);
    expect([status, text]).toEqual([415, expect.stringContaining('UTF-8')]);
  });
});
