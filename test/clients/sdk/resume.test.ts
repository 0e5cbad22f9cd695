import { expect, test } from 'vitest';
import { createFakeTime } from '../../core/fake-time.ts';
import { clientOf, codeOf, post, sse, start } from '../../support/sealed-client.ts';
import { until } from '../../support/wait.ts';

test('an answer that is cut at any byte is picked up where it was, with nothing twice', async () => {
  const gateway = await start(sse);
  const client = clientOf(gateway);
  const whole = await (await client.fetch('/v1/x', post)).text();
  for (const afterBytes of [22, 23, 30, 303, 304, 560, 570, 600, 900, 1200, 1900]) {
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
  const ended = codeOf(lonely.fetch('/v1/x', post).then((answer) => answer.text()));
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
  const text = client.fetch('/v1/x', post).then((response) => response.text());
  await until(() => (gateway.seen.length < 3 ? (time.advance(time.pending() > 0 ? 500 : 0), undefined) : true));
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
