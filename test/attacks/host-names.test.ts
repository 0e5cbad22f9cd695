/**
 * A page that the owner's browser shows can send requests to this machine by many names. By which of them is it taken for
 * the owner? Asked of the service and of `postern connect`.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { hostname, networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setSettings } from '../support/access-keys.ts';
import { askForInvite } from '../support/invites.ts';
import { requestAll } from '../support/requests.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';

const OWN = ['127.0.0.1', '127.8.4.2', 'localhost', 'LOCALHOST', 'a.localhost', '[::1]', 'localhost.'];
const LISTED = 'box.tailnet.example';
const addresses = Object.values(networkInterfaces())
  .flatMap((found = []) => found)
  .filter(({ internal, address }) => !internal && !address.startsWith('fe80'))
  .map(({ address, family }) => (family === 'IPv6' ? `[${address}]` : address));
const AMBIGUOUS = [hostname(), 'study.local', 'host.docker.internal', ...addresses];
const FOREIGN = [
  '0.0.0.0',
  '[::]',
  '[::ffff:7f00:1]',
  '[::ffff:127.0.0.1]',
  '2130706433',
  '127.1',
  '203.0.113.7',
  '[2001:db8::7]',
  'evil.example',
  'localhost.evil.example',
  '127.0.0.1.nip.example',
  'study.local.evil.example',
];

/** One of each class, and what they answer to a loopback caller. */
const ASKED = ['GET /', 'GET /v1/models', 'GET /mcp/tools', 'GET /agents', 'GET /pair/challenge', 'GET /admin/keys'];

let home: string;
let server: TestServer;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-names-'));
  await setSettings(home, { 'server.hostnames': [LISTED] });
  server = await startServer({ home });
});
afterAll(async () => {
  await server?.stop();
  await rm(home, { recursive: true, force: true });
});

async function statusesOf(url: string, name: string): Promise<readonly number[]> {
  const headers = { host: `${name}:${new URL(url).port}` };
  const asked = ASKED.map((line) => line.split(' ')).map(([method = '', path = '']) => ({
    url: url + path,
    method,
    headers,
  }));
  return (await requestAll([], asked)).map(({ status }) => status);
}
const isRefused = (status: number) => status === 403;
const refusedOf = (statuses: readonly number[]) => ASKED.filter((_, at) => isRefused(statuses[at]!));

/** The status line of the answer to a request that no client would send. */
async function answerTo(head: string, { port }: Pick<TestServer, 'port'> = server): Promise<string | undefined> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  socket.write(`${head}\r\n\r\n`);
  return (await text(socket)).split('\r\n')[0];
}

/** With two Host headers, in every order. */
const TWO_NAMES = [
  ['127.0.0.1', 'evil.example'],
  ['evil.example', '127.0.0.1'],
  ['127.0.0.1', '127.0.0.1'],
].map((names) => [...names.map((name) => `Host: ${name}`), 'Connection: close'].join('\r\n'));

/** The name stands in the address itself, and another one beside it (RFC 9112, 3.2.2). */
const absolute = (path: string, name: string, host: string): string =>
  [`GET http://${name}${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close'].join('\r\n');

describe('a page that is sent by another machine calls this one by one of its names', () => {
  test.each([...OWN, LISTED])('by %s the owner is served as ever', async (name) => {
    expect(refusedOf(await statusesOf(server.url, name))).toEqual([]);
  });

  test.each(AMBIGUOUS)('by %s, which may be another machine, there is inference and no more', async (name) => {
    expect(refusedOf(await statusesOf(server.url, name))).toEqual(ASKED.slice(2));
  });

  test.each(FOREIGN)('by %s there is nothing', async (name) => {
    expect(refusedOf(await statusesOf(server.url, name))).toEqual(ASKED);
  });

  test('by a name that is listed, a health check tells everything; by one that may be another machine, not', async () => {
    const bodies = await requestAll(
      [],
      [LISTED, 'study.local'].map((host) => ({ url: `${server.url}/health`, method: 'GET', headers: { host } })),
    );
    expect(bodies.map(({ body }) => body.includes('"version"'))).toEqual([true, false]);
  });

  test('without any name (HTTP/1.0) there is inference and no more', async () => {
    expect(await answerTo('GET /v1/models HTTP/1.0')).toBe('HTTP/1.1 200 OK');
    for (const path of ['/admin/keys', '/agents', '/mcp/tools']) {
      expect(await answerTo(`GET ${path} HTTP/1.0`)).toBe('HTTP/1.1 403 Forbidden');
    }
  });

  test('with two names there is nothing, whichever comes first', async () => {
    for (const names of TWO_NAMES) {
      expect(await answerTo(`GET /admin/keys HTTP/1.1\r\n${names}`)).toBe('HTTP/1.1 400 Bad Request');
    }
  });

  test.each(FOREIGN)('by %s in the address itself there is nothing, whatever Host says', async (name) => {
    for (const path of ['/', '/v1/models', '/admin/keys']) {
      expect(await answerTo(absolute(path, name, 'localhost'))).toBe('HTTP/1.1 403 Forbidden');
    }
  });

  test('the name in the address itself counts, and not the one beside it', async () => {
    expect(await answerTo(absolute('/admin/keys', 'study.local', 'localhost'))).toBe('HTTP/1.1 403 Forbidden');
    expect(await answerTo(absolute('/v1/models', 'study.local', 'localhost'))).toBe('HTTP/1.1 200 OK');
    expect(await answerTo(absolute('/admin/keys', 'localhost', 'study.local'))).toBe('HTTP/1.1 200 OK');
  });

  test('a page is our own by the name in the address itself, and not by the one beside it', async () => {
    const from = (origin: string) => `${absolute('/agents', 'localhost', 'study.local')}\r\nOrigin: ${origin}`;
    expect(await answerTo(from('http://study.local'))).toBe('HTTP/1.1 403 Forbidden');
    expect(await answerTo(from('http://localhost'))).toBe('HTTP/1.1 501 Not Implemented');
  });

  test('a page of such a name is not our own page, whatever its Origin says', async () => {
    const host = 'study.local';
    const asked = ['/agents', '/admin/keys', '/v1/models'].map((path) => ({
      url: server.url + path,
      method: 'GET',
      headers: { host, origin: `http://${host}`, 'x-postern-run-token': 'guessed' },
    }));
    const answers = await requestAll([], asked);
    expect(answers.map(({ status }) => status)).toEqual([403, 403, 200]);
    // As every page that "*" lets in: no page is told apart by its name.
    expect(answers.map(({ headers }) => headers['access-control-allow-origin'])).toEqual([undefined, undefined, '*']);
  });
});

describe('the same against "postern connect", which acts as a paired device', () => {
  let laptopHome: string;
  let laptop: TestServer;

  beforeAll(async () => {
    laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
    const paired = await runCli(['pair', '-'], { SVC_HOME: laptopHome }, await askForInvite(server));
    expect(paired.code).toBe(0);
    laptop = await startServer({ home: laptopHome, program: [cliPath, 'connect'] });
  });
  afterAll(async () => {
    await laptop?.stop();
    await rm(laptopHome, { recursive: true, force: true });
  });

  test.each(OWN)('by %s its user is served', async (name) => {
    const [root, models] = await statusesOf(laptop.url, name);
    expect([root, models]).toEqual([200, 200]);
  });

  test('with two names there is nothing, whichever comes first', async () => {
    for (const names of TWO_NAMES) {
      expect(await answerTo(`GET / HTTP/1.1\r\n${names}`, laptop)).toBe('HTTP/1.1 400 Bad Request');
    }
  });

  test.each([...AMBIGUOUS, ...FOREIGN, LISTED])('by %s there is nothing', async (name) => {
    expect(refusedOf(await statusesOf(laptop.url, name))).toEqual(ASKED);
    expect(await answerTo(absolute('/', name, 'localhost'), laptop)).toBe('HTTP/1.1 403 Forbidden');
  });
});
