/** A page tries to read an answer by embedding it: as a script, a style, a picture. And pages that are let in still read. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRelay } from '../../relay/relay-server.ts';
import { SUBPROTOCOL } from '../../relay/wire/frame.ts';
import { isBrowserMissing, launchBrowser } from '../support/browser.ts';
import { askForInvite } from '../support/invites.ts';
import { requestAll, type PlainRequest } from '../support/requests.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';

/** Of a relay's subprotocol, and without the key that every WebSocket needs. */
const OFFER = `Sec-WebSocket-Protocol: ${SUBPROTOCOL}\r\n`;

const json = { 'content-type': 'application/json' };
const chat = (stream: boolean) =>
  JSON.stringify({ model: 'foundation', stream, max_tokens: 4, messages: [{ role: 'user', content: 'Hello' }] });

/** An answer of each kind. */
const ASKED: readonly (Omit<PlainRequest, 'url'> & { readonly path: string })[] = [
  { method: 'GET', path: '/' },
  { method: 'GET', path: '/v1/models' },
  { method: 'GET', path: '/nowhere' },
  { method: 'PATCH', path: '/v1/models' },
  { method: 'GET', path: '/agents' },
  { method: 'GET', path: '/v1/models', headers: { host: 'evil.example' } },
  { method: 'GET', path: '/admin/keys', headers: { origin: 'https://evil.example' } },
  { method: 'POST', path: '/v1/chat/completions', headers: json, body: '{' },
  { method: 'POST', path: '/v1/chat/completions', headers: json, body: chat(false) },
  { method: 'POST', path: '/v1/chat/completions', headers: json, body: chat(true) },
  { method: 'POST', path: '/v1/chat/completions', headers: { ...json, 'content-length': '99999999' } },
  {
    method: 'OPTIONS',
    path: '/v1/models',
    headers: { origin: 'https://a.example', 'access-control-request-method': 'GET' },
  },
];

async function withoutHeaders(url: string, asked = ASKED): Promise<readonly string[]> {
  const answers = await requestAll(
    [],
    asked.map(({ path, ...request }) => ({ ...request, url: url + path })),
  );
  return answers.flatMap(({ status, headers }, at) => {
    const isSaid =
      headers['x-content-type-options'] === 'nosniff' && headers['cross-origin-resource-policy'] === 'same-origin';
    return status > 0 && isSaid ? [] : [`${asked[at]!.method} ${asked[at]!.path}: ${status}`];
  });
}

describe('a web page embeds an answer to learn what is in it', () => {
  let home: string;
  let server: TestServer;

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'postern-embedding-'));
    server = await startServer({ home });
  });
  afterAll(async () => {
    await server?.stop();
    await rm(home, { recursive: true, force: true });
  });

  test('every answer of the service says that no other page may embed it, or guess its type', async () => {
    expect(await withoutHeaders(server.url)).toEqual([]);
  });

  test('every answer of "postern connect" says so', async () => {
    const laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
    await runCli(['pair', '-'], { SVC_HOME: laptopHome }, await askForInvite(server));
    const laptop = await startServer({ home: laptopHome, program: [cliPath, 'connect'] });
    try {
      expect(await withoutHeaders(laptop.url)).toEqual([]);
    } finally {
      await laptop.stop();
      await rm(laptopHome, { recursive: true, force: true });
    }
  });

  test('every answer of a relay over plain HTTP says so', async () => {
    const relay = await startRelay({ host: '127.0.0.1', port: 0 });
    const asked = ['/', '/healthz', '/metrics'].map((path) => ({ method: 'GET', path }));
    try {
      expect(await withoutHeaders(`http://127.0.0.1:${relay.port}`, asked)).toEqual([]);
    } finally {
      await relay.close();
    }
  });

  test('so does every answer of a relay to what is no request, or no WebSocket of a relay', async () => {
    const relay = await startRelay({ host: '127.0.0.1', port: 0 });
    const upgrade = 'Host: relay\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
    const sent = {
      'HTTP/1.1 400 Bad Request': [
        'no request',
        `GET / HTTP/1.1\r\n${upgrade}`,
        `GET / HTTP/1.1\r\n${upgrade}${OFFER}`,
      ],
      'HTTP/1.1 417 Expectation Failed': ['GET / HTTP/1.1\r\nHost: relay\r\nExpect: a pony\r\nConnection: close\r\n'],
      'HTTP/1.1 431 Request Header Fields Too Large': [`GET / HTTP/1.1\r\nHost: ${'a'.repeat(9000)}\r\n`],
    };
    try {
      for (const [status, heads] of Object.entries(sent)) {
        for (const head of heads) {
          const socket = connect(relay.port, '127.0.0.1');
          socket.on('error', () => undefined).write(`${head}\r\n`);
          const answer = (await text(socket)).toLowerCase();
          expect(answer.split('\r\n')[0]).toBe(status.toLowerCase());
          expect(answer).toContain('x-content-type-options: nosniff\r\n');
          expect(answer).toContain('cross-origin-resource-policy: same-origin\r\n');
        }
      }
    } finally {
      await relay.close();
    }
  });

  describe.skipIf(isBrowserMissing)('in Chromium', () => {
    let site: Server;
    beforeAll(async () => {
      site = createServer((_, response) => response.setHeader('content-type', 'text/html').end('<body></body>'));
      await once(site.listen(0, '127.0.0.1'), 'listening');
    });
    afterAll(() => void site?.close());

    test('a page that is let in reads the models, and none can embed them', async () => {
      const browser = await launchBrowser([
        '--host-resolver-rules=MAP evil.example 127.0.0.1',
        '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests',
      ]);
      try {
        const page = await browser.newPage();
        await page.goto(`http://evil.example:${(site.address() as AddressInfo).port}/`);
        const told = await page.evaluate(async (url) => {
          const read = await fetch(`${url}/v1/models`).then((answer) => answer.status);
          const opaque = await fetch(`${url}/v1/models`, { mode: 'no-cors' }).then(
            () => 'embedded',
            () => 'blocked',
          );
          return { read, opaque };
        }, server.url);
        expect(told).toEqual({ read: 200, opaque: 'blocked' });
      } finally {
        await browser.close();
      }
    });
  });
});
