import { expect, test } from 'vitest';
import { clientOf, codeOf, post, start, tap } from '../../support/sealed-client.ts';
import { until } from '../../support/wait.ts';

test('aborting stops the call at the gateway, whether the answer has begun or not', async () => {
  const { body, push } = tap();
  const gateway = await start(({ path }) => (path === '/slow' ? new Promise(() => undefined) : { body }));
  const client = clientOf(gateway);
  const early = new AbortController();
  const pending = codeOf(client.fetch('/slow', { ...post, signal: early.signal }));
  await until(() => gateway.requests.length === 1);
  const reason = new Error('changed my mind');
  early.abort(reason);
  expect(await pending).toBe(reason);
  await until(() => gateway.requests[0]!.signal.aborted);

  const late = new AbortController();
  const response = await client.fetch('/stream', { ...post, signal: late.signal });
  push('one');
  const reader = response.body!.getReader();
  expect(new TextDecoder().decode((await reader.read()).value)).toBe('one');
  late.abort();
  expect(await codeOf(reader.read())).toMatchObject({ name: 'AbortError' });
  await until(() => gateway.requests[1]!.signal.aborted);
  expect(await codeOf(client.fetch('/x', { signal: AbortSignal.abort(reason) }))).toBe(reason);
  expect(gateway.requests).toHaveLength(2);
});

test('cancelling the body stops the call, reading it to the end does not', async () => {
  const { body, push } = tap();
  const gateway = await start(({ path }) => (path === '/whole' ? { body: 'all' } : { body }));
  const client = clientOf(gateway);
  const controller = new AbortController();
  await (await client.fetch('/whole', { ...post, signal: controller.signal })).text();
  controller.abort();
  const response = await client.fetch('/stream', post);
  push('one');
  await response.body!.cancel();
  await until(() => gateway.requests[1]!.signal.aborted);
  expect(gateway.seen.filter((seen) => seen === 'CANCEL')).toHaveLength(1);
});

test('a revoked device hears so in the middle of an answer, and is refused after it', async () => {
  const { body, push } = tap();
  const gateway = await start(() => ({ body }));
  const client = clientOf(gateway);
  const response = await client.fetch('/x', post);
  push('one');
  const reader = response.body!.getReader();
  await reader.read();
  gateway.revokeAll();
  expect(await codeOf(reader.read())).toBe('revoked');
  expect(await codeOf(client.fetch('/x'))).toBe('refused');
});

test('a closed client ends its calls and makes no more', async () => {
  const gateway = await start(() => ({ body: tap().body }));
  const client = clientOf(gateway);
  const response = await client.fetch('/x');
  client.close();
  expect(await codeOf(response.text())).toBe('closed');
  expect(await codeOf(client.fetch('/x'))).toBe('closed');
});

test.each([
  ['shutdown', 'gateway_stopped'],
  ['expired', 'session_expired'],
  ['cancelled', 'cancelled'],
  ['internal_error', 'gateway_failed'],
])('an answer that the gateway gives up as %s is not picked up again', async (code, expected) => {
  const { body, push } = tap();
  const gateway = await start(({ path }) => (path === '/late' ? new Promise(() => undefined) : { body }));
  const client = clientOf(gateway);
  const begun = await client.fetch('/begun', post);
  push('one');
  const late = codeOf(client.fetch('/late', post));
  await until(() => gateway.requests.length === 2);
  gateway.endCalls(code);
  expect(await codeOf(begun.text())).toBe(expected);
  expect(await late).toBe(expected);
  expect(gateway.seen).toEqual(['session', 'POST /begun', 'POST /late']);
});
