import { expect, test } from 'vitest';
import { createFakeTime } from '../../core/fake-time.ts';
import { clientOf, codeOf, post, sse, start } from '../../support/sealed-client.ts';
import { isThorough } from '../../support/sampling.ts';
import { until } from '../../support/wait.ts';

test('an answer that is cut at any byte is picked up where it was, with nothing twice', async () => {
  const gateway = await start(sse);
  const client = clientOf(gateway);
  const whole = await (await client.fetch('/v1/x', post)).text();
  for (let afterBytes = 22; afterBytes < 2200; afterBytes += isThorough ? 1 : 47) {
    gateway.meddle('call', { do: 'cut', afterBytes }, { do: 'cut', afterBytes: 900 });
    expect(await (await client.fetch('/v1/x', post)).text(), `${afterBytes}`).toBe(whole);
  }
  expect(gateway.seen.some((seen) => /^ATTACH [1-9]/u.test(seen))).toBe(true);
});

test('records over 64 KiB survive a cut too', async () => {
  const long = 'x'.repeat(500_000);
  const gateway = await start(() => ({ body: long }));
  gateway.meddle('call', { do: 'cut', afterBytes: 200_000 }, { do: 'cut', afterBytes: 150_000 });
  expect(await (await clientOf(gateway).fetch('/x')).text()).toBe(long);
});

test('records that are gone, and a path that stays dead, are errors and no end', async () => {
  const gateway = await start(sse, { keepsRecords: false });
  const client = clientOf(gateway);
  gateway.meddle('call', { do: 'cut', afterBytes: 600 });
  const response = await client.fetch('/v1/x', post);
  expect(await codeOf(response.text())).toBe('records_gone');

  const time = createFakeTime();
  const lonely = clientOf(gateway, { now: time.now, setTimer: time.setTimer });
  const drop = { do: 'drop' } as const;
  gateway.meddle('call', { do: 'cut', afterBytes: 600 }, ...Array.from({ length: 20 }, () => drop));
  const cut = await lonely.fetch('/v1/x', post);
  const ended = codeOf(cut.text());
  let isOver = false;
  void ended.finally(() => (isOver = true));
  await until(() => (time.advance(1000), isOver));
  expect(await ended).toBe('truncated');
});

test('a path that falls silent is left', async () => {
  const time = createFakeTime();
  const gateway = await start(sse);
  gateway.meddle('call', { do: 'mute', afterBytes: 600 });
  const client = clientOf(gateway, { now: time.now, setTimer: time.setTimer });
  const text = (await client.fetch('/v1/x', post)).text();
  await until(() => gateway.seen.length > 2 || (time.advance(1000), undefined));
  expect(await text).toContain('w4');
  expect(gateway.seen[2]).toMatch(/^ATTACH/u);
});

test('a bit flipped anywhere in an answer never shows as data', async () => {
  const gateway = await start(() => ({ body: 'the whole truth' }));
  const client = clientOf(gateway);
  for (let at = 0; at < 560; at += 9) {
    gateway.meddle('call', { do: 'flip', at });
    const outcome = await codeOf(client.fetch('/x').then((response) => response.text()));
    expect(['the whole truth', 'damaged', 'offline', 'incompatible'], `byte ${at}`).toContain(outcome);
    gateway.meddle('call');
  }
});

test('an answer that is long in coming is waited for, and what was asked is done once', async () => {
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const gateway = await start(() => answered.then(() => ({ body: 'at last' })));
  const time = createFakeTime();
  const text = clientOf(gateway, { now: time.now, setTimer: time.setTimer })
    .fetch('/x', post)
    .then((response) => response.text());
  // The connection is silent, since no sign of life can come before the head.
  await until(() => gateway.requests.length === 1);
  await until(() => (time.advance(250), gateway.seen.filter((seen) => seen === 'ATTACH 0').length > 1));
  answer();
  expect(await text).toBe('at last');
  expect(gateway.requests).toHaveLength(1);
});
