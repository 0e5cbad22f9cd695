/** Whoever reaches `postern connect` acts as the paired device, and web pages in the owner's browser reach it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isBrowserMissing, launchBrowser } from '../support/browser.ts';
import { askForInvite } from '../support/invites.ts';
import { readLog } from '../support/request-log.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const hostilePage = fileURLToPath(new URL('connect.page.mjs', import.meta.url));

/** Names that lead to this machine, whoever owns them. */
const [EVIL, FRIEND] = ['http://evil.example', 'http://friend.example'];

describe.skipIf(isBrowserMissing)('a web page on the second laptop', () => {
  let gateway: TestServer;
  let laptopHome: string;
  let laptop: TestServer;
  let browser: Browser;

  beforeAll(async () => {
    gateway = await startServer();
    laptopHome = await mkdtemp(join(tmpdir(), 'postern-laptop-'));
    await runCli(['pair', '-'], { SVC_HOME: laptopHome }, await askForInvite(gateway));
    laptop = await startServer({
      home: laptopHome,
      program: [cliPath, 'connect'],
      args: ['--allow-origin', FRIEND],
    });
    await until(() => laptop.log().includes('Connected to home.'));
    browser = await launchBrowser([
      '--host-resolver-rules=MAP evil.example 127.0.0.1, MAP friend.example 127.0.0.1',
      // Chromium's own barrier between pages and this machine, which other browsers don't have.
      '--disable-features=LocalNetworkAccessChecks,BlockInsecurePrivateNetworkRequests',
    ]);
  });
  afterAll(async () => {
    await browser?.close();
    await laptop?.stop();
    await gateway?.stop();
    await rm(laptopHome, { recursive: true, force: true });
  });

  /** A page of that origin, whatever is served there. */
  async function pageOf(origin: string): Promise<Page> {
    const page = await browser.newPage();
    await page.route(`${origin}/page`, (route) => route.fulfill({ contentType: 'text/html', body: '<body></body>' }));
    await page.goto(`${origin}/page`);
    await page.addScriptTag({ path: hostilePage });
    return page;
  }

  /** What the page learned, and with which status it was answered, by what it asked for. */
  async function attackFrom(origin: string, target: string) {
    const page = await pageOf(origin);
    const answers: string[] = [];
    page.on('response', (response) => {
      const request = response.request();
      if (response.url().startsWith(target)) answers.push(`${request.method()} ${response.status()}`);
    });
    const report = await page.evaluate<Record<string, string>>(`attack(${JSON.stringify(target)})`);
    await page.close();
    return { report, answers };
  }

  /** What arrived at home since, of what a page could have asked for. */
  async function askedAtHome(): Promise<readonly string[]> {
    const { requests } = await readLog(gateway, 'limit=200');
    return requests.map(({ method, path }) => `${method} ${path}`).filter((line) => line.includes(' /v1/'));
  }
  const onLaptop = (path: string) => fetch(laptop.url + path).then(({ status }) => status);

  test('of another origin reads nothing and causes nothing', async () => {
    const { report, answers } = await attackFrom(EVIL, laptop.url);
    expect(report).toEqual({
      'simple GET': 'failed',
      'simple POST': 'failed',
      'preflighted POST': 'failed',
      'preflighted DELETE': 'failed',
      // Cross-Origin-Resource-Policy: not even that there is something.
      'blind GET': 'failed',
      'blind POST': 'failed',
      beacon: 'true',
      form: 'unreadable',
      image: 'failed',
      script: 'failed',
      'event source': 'failed',
    });
    // The browser does not even tell its own debugger of most answers that it keeps from the page.
    expect(new Set(answers.map((answer) => answer.split(' ').at(-1)))).toEqual(new Set(['403']));
    expect(await askedAtHome()).toEqual([]);
  });

  test('whose name was made to lead here reads nothing and causes nothing', async () => {
    const here = `${EVIL}:${new URL(laptop.url).port}`;
    const { report, answers } = await attackFrom(here, here);
    // To the browser it is the page's own server, so it may read the refusals.
    expect(report).toMatchObject({
      'simple GET': 'basic 403',
      'simple POST': 'basic 403',
      'preflighted POST': 'basic 403',
      'preflighted DELETE': 'basic 403',
      'blind GET': 'basic 403',
      'blind POST': 'basic 403',
      form: expect.stringContaining('127.0.0.1 or localhost'),
      image: 'failed',
      script: 'failed',
      'event source': 'failed',
    });
    expect(answers.length).toBeGreaterThanOrEqual(10);
    expect(answers.filter((line) => !line.endsWith(' 403'))).toEqual([]);
    expect(await askedAtHome()).toEqual([]);
  });

  test('gets nothing by being opened there', async () => {
    const page = await browser.newPage();
    const response = await page.goto(`${EVIL}:${new URL(laptop.url).port}/v1/models`);
    expect(response?.status()).toBe(403);
    await page.close();
    expect(await askedAtHome()).toEqual([]);
  });

  test('is let in if its origin was named, and what it asks for arrives at home', async () => {
    const { report } = await attackFrom(FRIEND, laptop.url);
    expect(report).toMatchObject({ 'simple GET': 'cors 200', 'preflighted POST': 'cors 200' });
    expect(await onLaptop('/v1/models')).toBe(200);
    await until(async () => (await askedAtHome()).includes('POST /v1/chat/completions'));
  });
});
