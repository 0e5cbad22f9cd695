/** A device that comes and goes: addresses in the gateway's own network, and a relay besides. */
import { expect, test } from 'vitest';
import type { PosternClient } from '../../../clients/sdk/index.ts';
import type { Platform } from '../../../clients/sdk/platform.ts';
import { OP } from '../../../relay/wire/op.ts';
import { createFakeTime } from '../../core/fake-time.ts';
import { lanHere } from '../../support/lan-here.ts';
import { relaysFor, startRelayed, type RelayedGateway } from '../../support/relayed-gateway.ts';
import { clientOf, codeOf, echo, post, tap } from '../../support/sealed-client.ts';
import { until } from '../../support/wait.ts';

const MINUTE_MS = 60_000;

function clientFor(
  { gateway, device }: RelayedGateway,
  urls: readonly string[],
  options: Partial<Platform> = {},
): PosternClient {
  const known = { ...device, urls };
  return clientOf(gateway, { ...options, transports: relaysFor(known) }, known);
}

/** What is read of a stream until its text ends like this. */
function readerOf(response: Response): (end: string) => Promise<string> {
  const reader = response.body!.getReader();
  let text = '';
  return async (end) => {
    while (!text.endsWith(end)) text += new TextDecoder().decode((await reader.read()).value);
    return text;
  };
}

const numbered = (from: number, to: number): string[] => Array.from({ length: to - from }, (_, at) => `<${from + at}>`);

test('addresses that swallow what they are sent delay the first call by the stagger, and not by their silence', async () => {
  const relayed = await startRelayed(echo);
  const [first, second] = [await lanHere(), await lanHere()];
  const time = createFakeTime(Date.now());
  const client = clientFor(relayed, [first.url, second.url], { setTimer: time.setTimer });
  const answered = client.fetch('/x', post);
  await until(() => first.asked === 1);
  time.advance(299);
  await settle();
  expect([second.asked, relayed.streams.length]).toEqual([0, 0]);
  time.advance(1);
  await until(() => second.asked === 1);
  time.advance(299);
  await settle();
  expect(relayed.streams).toEqual([]);
  time.advance(1);
  // Nearer ones that come in the same turn would be preferred.
  await until(() => relayed.gateway.seen.length > 0);
  let isOver = false;
  void answered.finally(() => (isOver = true));
  await until(() => (time.advance(0), isOver));
  expect((await answered).status).toBe(200);
  // One handshake for each, and those that lost are given up.
  expect([first.asked, second.asked]).toEqual([1, 1]);
  expect(relayed.gateway.seen).toEqual(['session', 'POST /x']);
  await until(() => first.open + second.open === 0);
  expect(client.path?.kind).toBe('relay');
});

test('an address that answers is all that is asked', async () => {
  const relayed = await startRelayed(echo);
  const lan = await lanHere(relayed.gateway.url);
  const client = clientFor(relayed, [lan.url]);
  await client.fetch('/x');
  expect(client.path).toEqual({ kind: 'lan', url: lan.url });
  expect([relayed.gateway.seen, relayed.streams]).toEqual([['session', 'GET /x'], []]);
});

test('an address that refuses is left at once', async () => {
  const relayed = await startRelayed(echo);
  const lan = await lanHere(relayed.gateway.url);
  await lan.leave();
  const time = createFakeTime(Date.now());
  const asked: string[] = [];
  const client = clientFor(relayed, [lan.url], {
    setTimer: time.setTimer,
    fetch: (url, init) => (asked.push(url), fetch(url, init)),
  });
  expect((await client.fetch('/x', post)).status).toBe(200);
  expect(client.path?.kind).toBe('relay');
  expect(asked).toEqual([`${lan.url}/secure/session`]);
});

test('a stream that loses the own network goes on through the relay, and calls come home again', async () => {
  const { body, push } = tap();
  const relayed = await startRelayed((request) => (request.path === '/slow' ? { body } : echo(request)));
  const lan = await lanHere(relayed.gateway.url);
  let nowMs = Date.now();
  const client = clientFor(relayed, [lan.url], { now: () => nowMs });
  const readTo = readerOf(await client.fetch('/slow', post));
  for (const piece of numbered(0, 20)) push(piece);
  await readTo('<19>');
  expect(client.path?.kind).toBe('lan');
  await lan.leave();
  for (const piece of numbered(20, 40)) push(piece);
  expect(await readTo('<39>')).toBe(numbered(0, 40).join(''));
  expect(client.path?.kind).toBe('relay');
  expect(relayed.streams.map(({ op }) => op)).toEqual([OP.session, OP.call]);

  await lan.return();
  const before = lan.asked;
  await client.fetch('/a', post);
  await settle();
  // Not yet: it is looked once a minute.
  expect([client.path?.kind, lan.asked]).toEqual(['relay', before]);
  nowMs += MINUTE_MS;
  await client.fetch('/b', post);
  await until(() => client.path?.kind === 'lan');
  const throughRelay = relayed.streams.length;
  await client.fetch('/c', post);
  expect(relayed.streams).toHaveLength(throughRelay);
  // What runs through the relay goes on there.
  push('<40>');
  expect(await readTo('<40>')).toBe(numbered(0, 41).join(''));
  expect(relayed.gateway.requests.map(({ path }) => path)).toEqual(['/slow', '/a', '/b', '/c']);
});

test('a stream that loses the relay goes on in the own network', async () => {
  const { body, push } = tap();
  const relayed = await startRelayed(() => ({ body }));
  const lan = await lanHere(relayed.gateway.url);
  await lan.leave();
  const client = clientFor(relayed, [lan.url]);
  const readTo = readerOf(await client.fetch('/slow', post));
  for (const piece of numbered(0, 20)) push(piece);
  await readTo('<19>');
  expect(client.path?.kind).toBe('relay');
  await lan.return();
  await relayed.killRelay();
  for (const piece of numbered(20, 40)) push(piece);
  expect(await readTo('<39>')).toBe(numbered(0, 40).join(''));
  expect(client.path?.kind).toBe('lan');
  expect(relayed.gateway.requests).toHaveLength(1);
});

test('looking for a nearer way neither delays a call nor fails it, and happens once a minute', async () => {
  const relayed = await startRelayed(echo);
  const lan = await lanHere();
  let nowMs = Date.now();
  const client = clientFor(relayed, [lan.url], { now: () => nowMs });
  await client.fetch('/a');
  const before = lan.asked;
  nowMs += MINUTE_MS;
  for (let at = 0; at < 5; at++) expect((await client.fetch('/b', post)).status).toBe(200);
  await until(() => lan.asked === before + 1);
  // It is still being asked.
  expect(lan.open).toBe(1);
  expect((await client.fetch('/c', post)).status).toBe(200);
  expect(lan.asked).toBe(before + 1);
  expect(client.path?.kind).toBe('relay');
  client.close();
  await until(() => lan.open === 0);
});

test('a way that holds for handshakes alone does not keep calls from another', async () => {
  const relayed = await startRelayed(echo);
  const lan = await lanHere(relayed.gateway.url);
  const client = clientFor(relayed, [lan.url], {
    fetch: (url, init) => (url.endsWith('/secure/call') ? Promise.reject(new TypeError('lost')) : fetch(url, init)),
  });
  expect((await client.fetch('/x', post)).status).toBe(200);
  expect(client.path?.kind).toBe('relay');
  expect(relayed.gateway.requests).toHaveLength(1);
});

test('when no way leads there, the most telling reason is given', async () => {
  const relayed = await startRelayed(echo);
  const lan = await lanHere();
  await lan.leave();
  await relayed.leaveRelay();
  expect(await codeOf(clientFor(relayed, [lan.url]).fetch('/x', post))).toBe('gateway_away');
});

/** What was to happen now has happened: bytes that were on their way have come. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}
