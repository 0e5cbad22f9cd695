/** A hostile web page in the owner's browser, while any page may use models, which is the default. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setSettings } from '../support/access-keys.ts';
import { isBrowserMissing, launchBrowser } from '../support/browser.ts';
import { pageCaller, plainCaller } from '../support/callers.ts';
import { endless } from '../support/request-log.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const [EVIL, APP, LISTED] = ['https://evil.example', 'https://app.example', 'https://listed.example'];
const chat = { model: 'foundation', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 };
const forever = { ...endless, model: 'foundation', stream: true };

let home: string;
let server: TestServer;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-page-'));
  await setSettings(home, { 'server.allowedOrigins': ['*', LISTED], 'pairing.appOrigin': APP });
  server = await startServer({ home });
});
afterAll(async () => {
  await server?.stop();
  await rm(home, { recursive: true, force: true });
});

const CHANNEL = [
  ['GET', '/pair/challenge'],
  ['POST', '/pair'],
  ['POST', '/pair-invite'],
  ['POST', '/secure/session'],
  ['POST', '/secure/call'],
] as const;
/** Which pages come how far, by what their browser says of them. */
const PAGES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  any: { origin: EVIL },
  'without an origin': { origin: 'null' },
  'of an image or a frame': { 'sec-fetch-site': 'cross-site' },
  'of another port here': { origin: 'http://localhost:3000', 'sec-fetch-site': 'same-site' },
};

describe('a page that the owner knows nothing of', () => {
  test.each(Object.keys(PAGES))('learns nothing of the channel and of pairing: %s', async (page) => {
    for (const alias of ['', '/v1', '/api', '/v1/api']) {
      for (const [method, path] of CHANNEL) {
        const answer = await plainCaller(server, page, PAGES[page]!).ask(method, alias + path);
        expect([path, answer.status, answer.text]).toEqual([
          path,
          403,
          expect.stringContaining('A web page may not call this'),
        ]);
        expect(answer.headers['access-control-allow-origin']).toBeUndefined();
      }
    }
    const { text } = await plainCaller(server, 'the owner', {}).ask('GET', '/admin/approvals');
    expect(JSON.parse(text)).toMatchObject({ approvals: [] });
  });

  test('is told so before it asks', async () => {
    for (const [origin, allowed] of [
      [EVIL, undefined],
      [APP, APP],
      [LISTED, LISTED],
    ] as const) {
      for (const [method, path] of CHANNEL) {
        const headers = { origin, 'access-control-request-method': method };
        const answer = await plainCaller(server, 'a browser', headers).ask('OPTIONS', path);
        expect([origin, path, answer.headers['access-control-allow-origin']]).toEqual([origin, path, allowed]);
      }
    }
  });

  test('has two requests at a time, whatever they ask, and gets 429 with Retry-After for the next', async () => {
    const streams = await openStreams([EVIL, EVIL]);
    const refused = await pageCaller(server, EVIL).ask('POST', '/v1/chat/completions', chat);
    expect([refused.status, Number(refused.headers['retry-after']) > 0]).toEqual([429, true]);
    expect(refused.headers['access-control-allow-origin']).toBe('*');
    expect((await pageCaller(server, EVIL).ask('GET', '/api/tags')).status).toBe(429);
    expect((await pageCaller(server, APP.replace('app', 'other')).ask('GET', '/v1/models')).status).toBe(200);
    for (const leave of streams) leave();
    await until(async () => (await pageCaller(server, EVIL).ask('GET', '/v1/models')).status === 200);
  });

  test('and many of them have eight, which keep nobody else out', async () => {
    const origins = Array.from({ length: 4 }, (_, index) => `https://${index}.evil.example`);
    const streams = await openStreams([...origins, ...origins]);
    expect((await pageCaller(server, EVIL).ask('GET', '/v1/models')).status).toBe(429);
    expect((await pageCaller(server, LISTED).ask('GET', '/v1/models')).status).toBe(200);
    expect((await plainCaller(server, 'the owner', {}).ask('GET', '/v1/models')).status).toBe(200);
    for (const leave of streams) leave();
    await until(async () => (await pageCaller(server, EVIL).ask('GET', '/v1/models')).status === 200);
  });

  test('waits for the model until nobody else does', async () => {
    const leave = await openStream(undefined);
    const order: string[] = [];
    const answered = (name: string, headers: Record<string, string>) =>
      plainCaller(server, name, headers)
        .ask('POST', '/v1/chat/completions', chat)
        .then(() => order.push(name));
    const guests = [answered('page', { origin: EVIL }), answered('page', { origin: EVIL })];
    await waiting(2);
    const owners = [answered('owner', {}), answered('owner', {}), answered('owner', {})];
    await waiting(5);
    leave();
    await Promise.all([...guests, ...owners]);
    expect(order).toEqual(['owner', 'owner', 'owner', 'page', 'page']);
  });

  test('does not unload a model by keep_alive, and is told that it had no effect', async () => {
    await plainCaller(server, 'the owner', {}).ask('POST', '/v1/chat/completions', chat);
    const answer = await pageCaller(server, EVIL).ask('POST', '/api/generate', { model: 'foundation', keep_alive: 0 });
    expect([answer.status, answer.headers['x-postern-ignored']]).toEqual([200, 'keep_alive']);
    expect(await loaded()).toEqual(['foundation']);
  });

  test('sees neither agents, tools and administration nor more of the health than strangers do', async () => {
    for (const path of ['/agents', '/mcp/tools', '/admin/status', '/admin/keys', '/metrics', '/admin/requests']) {
      expect([path, (await pageCaller(server, EVIL).ask('GET', path)).status]).toEqual([path, 403]);
    }
    expect(Object.keys(JSON.parse((await pageCaller(server, EVIL).ask('GET', '/health')).text) as object)).toEqual([
      'status',
      'timestamp',
    ]);
  });
});

describe('the page of the app that devices are paired with', () => {
  test('pairs and carries the channel, and does nothing else', async () => {
    const app = pageCaller(server, APP);
    const challenge = await app.ask('GET', '/pair/challenge');
    expect([challenge.status, challenge.headers['access-control-allow-origin']]).toEqual([200, APP]);
    expect((await app.ask('POST', '/secure/session')).status).toBe(400);
    for (const path of ['/v1/models', '/agents', '/admin/status'])
      expect((await app.ask('GET', path)).status).toBe(403);
  });
});

describe.skipIf(isBrowserMissing)('in a real browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launchBrowser([
      // Chromium's own barrier between pages and this machine, which other browsers don't have.
      '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests',
    ]);
  });
  afterAll(() => browser?.close());

  async function pageOf(origin: string): Promise<Page> {
    const page = await browser.newPage();
    await page.route(`${origin}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '<body></body>' }));
    await page.goto(`${origin}/page`);
    return page;
  }
  /** What a script of the page gets to see. */
  const seen = (page: Page, path: string, options: object = {}): Promise<string> =>
    page.evaluate(
      ([url, asked]) =>
        fetch(url, asked).then(
          async (answer) => `${answer.type} ${answer.status} ${await answer.text()}`,
          () => 'nothing',
        ),
      [server.url + path, options] as const,
    );

  test('a hostile page reads models, and nothing of the channel, however it asks', async () => {
    const page = await pageOf(EVIL);
    expect(await seen(page, '/v1/models')).toContain('cors 200');
    for (const [method, path] of CHANNEL) {
      const body = method === 'POST' ? { body: 'x' } : {};
      expect(await seen(page, path, { method, ...body })).toBe('nothing');
      expect(await seen(page, path, { method, ...body, mode: 'no-cors' })).toBe('nothing');
    }
    const { text } = await plainCaller(server, 'the owner', {}).ask('GET', '/admin/requests?limit=50');
    const { requests } = JSON.parse(text) as { requests: { path: string; status: number; user_agent: string }[] };
    const tried = requests.filter(
      ({ path, user_agent: agent }) => /^\/(pair|secure)/.test(path) && /Chrom/.test(agent),
    );
    expect(tried.length).toBeGreaterThanOrEqual(2 * CHANNEL.length);
    expect(new Set(tried.map(({ status }) => status))).toEqual(new Set([403]));
    await page.close();
  });

  test("the app's page reads the challenge of a pairing", async () => {
    const page = await pageOf(APP);
    expect(await seen(page, '/pair/challenge')).toContain('cors 200');
    expect(await seen(page, '/v1/models')).toBe('nothing');
    await page.close();
  });
});

/** A stream that goes on until it is left. */
async function openStream(origin: string | undefined): Promise<() => void> {
  const leave = new AbortController();
  const before = await inflight();
  void fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    headers: origin === undefined ? {} : { origin },
    body: JSON.stringify(forever),
    signal: leave.signal,
  }).catch(() => undefined);
  await until(async () => (await inflight()) > before);
  return () => leave.abort();
}

/** One after the other, so that each is known to have begun. */
async function openStreams(origins: readonly string[]): Promise<readonly (() => void)[]> {
  const streams: (() => void)[] = [];
  for (const origin of origins) streams.push(await openStream(origin));
  return streams;
}

interface Health {
  readonly loaded: readonly string[];
  readonly inflight: Readonly<Record<string, { readonly running: number; readonly queued: number }>>;
}
const health = async () =>
  JSON.parse((await plainCaller(server, 'the owner', {}).ask('GET', '/health')).text) as Health;
const loaded = async () => (await health()).loaded;
async function inflight(): Promise<number> {
  const { running = 0, queued = 0 } = (await health()).inflight['foundation'] ?? {};
  return running + queued;
}
const waiting = (count: number) => until(async () => (await health()).inflight['foundation']?.queued === count);
