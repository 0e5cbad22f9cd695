/** Who a request is taken to be from, what it may be counted for, and the small parts that this is made of. */
import { expect, test } from 'vitest';
import type { AccessKeyRegistry } from '../../identity/node/access-key-registry.ts';
import { identityUnavailable } from '../../gateway/access-key-source.ts';
import { readCredential } from '../../gateway/credential.ts';
import { createIdentifier, MAX_FAILURES_PER_MINUTE, type AccessSettings } from '../../gateway/identify.ts';
import { createLiveRequests } from '../../gateway/live-requests.ts';
import { createRateWindow, MAX_NAMES } from '../../gateway/rate-window.ts';
import { sourceOf } from '../../gateway/source.ts';
import { createFakeTime } from '../core/fake-time.ts';
import { keysOfMemory } from '../support/registry.ts';

const RUN_TOKEN = 'the token of this run';

function createGate(settings: Partial<AccessSettings> = {}, open?: () => Promise<AccessKeyRegistry>) {
  const time = createFakeTime();
  const registry = keysOfMemory(time.now);
  const live = createLiveRequests({ setTimer: time.setTimer });
  let opened = 0;
  const { identify } = createIdentifier({
    keys: {
      open: () => {
        opened += 1;
        return open === undefined ? Promise.resolve(registry) : open();
      },
    },
    live,
    settings: { requireKeyOnLoopback: false, requestsPerMinute: 600, requestsAtOnce: 16, ...settings },
    runToken: RUN_TOKEN,
    elapsed: time.now,
  });
  const closings: (() => void)[] = [];
  const arrive = (token: string | undefined, { from = '192.0.2.1', runToken = '', hasLeft = false } = {}) => {
    return identify({
      headers: { 'x-postern-run-token': runToken },
      headersDistinct: token === undefined ? {} : { authorization: [`Bearer ${token}`] },
      provenance: { isLoopback: from === '127.0.0.1', site: 'none', origin: undefined, source: sourceOf(from) },
      exchange: {
        isClosed: hasLeft,
        onClosed: (then) => closings.push(() => then(true)),
        onHalfClosed: () => {},
        cut: () => {},
      },
    });
  };
  const finishAll = () => closings.splice(0).forEach((close) => close());
  return { arrive, finishAll, live, opened: () => opened, registry, time };
}

test.each([
  [{}, { kind: 'none' }],
  [{ authorization: ['Bearer k'] }, { kind: 'token', token: 'k' }],
  [{ authorization: ['bEARER  k '] }, { kind: 'token', token: 'k' }],
  [{ 'x-api-key': [' k '] }, { kind: 'token', token: 'k' }],
  [{ 'api-key': ['k'] }, { kind: 'token', token: 'k' }],
  [{ 'api-key': ['k'], 'x-api-key': ['l'] }, { kind: 'malformed' }],
  [
    { authorization: ['Bearer k'], 'x-api-key': ['k'] },
    { kind: 'token', token: 'k' },
  ],
  [{ authorization: ['Bearer k', 'Bearer k'] }, { kind: 'token', token: 'k' }],
  [{ authorization: ['Bearer k'], 'x-api-key': ['l'] }, { kind: 'malformed' }],
  [{ authorization: ['Bearer k', 'Bearer l'] }, { kind: 'malformed' }],
  [{ 'x-api-key': ['k', 'l'] }, { kind: 'malformed' }],
  [{ authorization: ['Basic k'] }, { kind: 'malformed' }],
  [{ authorization: ['Basic k'], 'x-api-key': ['k'] }, { kind: 'malformed' }],
  [{ authorization: ['Bearer'] }, { kind: 'malformed' }],
  [{ authorization: ['Bearer a b'] }, { kind: 'malformed' }],
  [{ 'x-api-key': [''] }, { kind: 'malformed' }],
])('%j shows %j', (headers, credential) => {
  expect(readCredential(headers)).toEqual(credential);
});

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['2001:DB8:0:7:1:2:3:4', '2001:db8:0:7::/64'],
  ['2001:db8:0:7::9', '2001:db8:0:7::/64'],
  ['2001:db8::9', '2001:db8:0:0::/64'],
  ['2001:db8::1:2:3:4', '2001:db8:0:0::/64'],
  ['::9', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  [undefined, ''],
])('%s is counted as %s', (address, source) => {
  expect(sourceOf(address)).toBe(source);
});

test('a window counts to its limit, and begins anew', () => {
  const time = createFakeTime();
  const window = createRateWindow({ limit: 2, now: time.now });
  for (const name of ['a', 'a', 'b']) window.count(name);
  expect([window.retryAfterS('a'), window.retryAfterS('b')]).toEqual([60, undefined]);
  time.advance(59_001);
  expect(window.retryAfterS('a')).toBe(1);
  time.advance(999);
  expect(window.retryAfterS('a')).toBe(undefined);
});

test('a window remembers so many names and no more', () => {
  const window = createRateWindow({ limit: 1, now: () => 0 });
  for (let n = 0; n <= MAX_NAMES; n += 1) window.count(`name ${n}`);
  expect([window.retryAfterS('name 0'), window.retryAfterS('name 1')]).toEqual([undefined, 60]);
});

test('on this machine nothing is asked and nothing is looked at', async () => {
  const { arrive, opened, registry } = createGate();
  for (const token of [undefined, 'sk-dummy', registry.create({}).token]) {
    const { caller, fault } = await arrive(token, { from: '127.0.0.1' });
    expect([caller.scope, caller.credential, fault]).toEqual(['owner', 'none', undefined]);
  }
  expect(opened()).toBe(0);
});

test('on this machine a key is asked for where its owner wants that, or the token of the run', async () => {
  const { arrive, registry } = createGate({ requireKeyOnLoopback: true });
  const from = '127.0.0.1';
  const { token, key } = registry.create({ agentIndex: 1 });
  expect(await arrive(undefined, { from })).toMatchObject({ caller: { scope: 'anonymous' } });
  expect(await arrive('sk-dummy', { from })).toMatchObject({ caller: { scope: 'anonymous' }, fault: 'malformed' });
  expect(await arrive(token, { from })).toMatchObject({
    caller: { transport: 'loopback', credential: 'key', scope: key.scope, keyId: key.kid },
  });
  expect(await arrive('sk-dummy', { from, runToken: RUN_TOKEN })).toMatchObject({ caller: { scope: 'owner' } });
  // The token of the run is this machine's alone.
  expect(await arrive(undefined, { runToken: RUN_TOKEN })).toMatchObject({ caller: { scope: 'anonymous' } });
});

test('what is no key at all opens no store; a store that does not open is a 503', async () => {
  const shut = () => Promise.reject(identityUnavailable(10, new Error('locked')));
  const { arrive, opened, registry } = createGate({}, shut);
  expect(await arrive('sk-dummy')).toMatchObject({ fault: 'malformed' });
  expect(opened()).toBe(0);
  const { failure, caller } = await arrive(registry.create({}).token);
  expect(failure).toMatchObject({ code: 'identity_unavailable', headers: { 'retry-after': '10' } });
  expect(caller.scope).toBe('anonymous');
});

test('failures are counted by source; a key that counts goes on, whatever others show from there', async () => {
  const { arrive, registry, time } = createGate();
  const { token } = registry.create({});
  for (let n = 0; n < MAX_FAILURES_PER_MINUTE; n += 1) {
    expect(await arrive(`sk-${n}`, { from: `2001:db8::${n}` })).toMatchObject({ fault: 'malformed' });
  }
  const blocked = await arrive('sk-another', { from: '2001:db8::ffff' });
  expect(blocked).toMatchObject({ fault: 'too_many_failures', failure: { code: 'rate_limited' } });
  expect(blocked.failure!.headers['retry-after']).toBe('60');
  expect(await arrive(token, { from: '2001:db8::ffff' })).toMatchObject({ caller: { credential: 'key' } });
  expect(await arrive('sk-another', { from: '2001:db8:0:1::1' })).toMatchObject({ fault: 'malformed' });
  time.advance(60_000);
  expect(await arrive('sk-another', { from: '2001:db8::ffff' })).toMatchObject({ fault: 'malformed' });
});

test('a key has so many requests a minute, wherever they come from, and another key its own', async () => {
  const { arrive, finishAll, registry, time } = createGate({ requestsPerMinute: 3 });
  const [one, other] = [registry.create({}), registry.create({})];
  for (const from of ['192.0.2.1', '192.0.2.2', '192.0.2.3']) {
    expect((await arrive(one.token, { from })).failure).toBe(undefined);
    finishAll();
  }
  expect((await arrive(one.token)).failure).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '60' } });
  expect((await arrive(other.token)).failure).toBe(undefined);
  time.advance(60_000);
  expect((await arrive(one.token)).failure).toBe(undefined);
});

test('a key has so many requests at once', async () => {
  const { arrive, finishAll, live, registry } = createGate({ requestsAtOnce: 2 });
  const { token, key } = registry.create({});
  for (const failure of [undefined, undefined]) expect((await arrive(token)).failure).toBe(failure);
  expect((await arrive(token)).failure).toMatchObject({ code: 'rate_limited', headers: { 'retry-after': '1' } });
  expect(live.count(key.kid)).toBe(2);
  finishAll();
  expect(live.count(key.kid)).toBe(0);
  expect((await arrive(token)).failure).toBe(undefined);
});

test('a revocation in the very moment in which a key is looked at finds the request', async () => {
  const { arrive, live, registry } = createGate();
  const { token, key } = registry.create({});
  registry.onRevocation((kids) => live.end(kids));
  // Every way in which the two can be interleaved, step by step.
  for (let steps = 0; steps < 10; steps += 1) {
    const made = steps === 0 ? { token, key } : registry.create({});
    const arrived = arrive(made.token);
    for (let step = 0; step < steps; step += 1) await Promise.resolve();
    const revoked = registry.revoke(made.key.kid);
    const { caller, live: request } = await arrived;
    await revoked;
    expect([steps, caller.scope === 'anonymous' || request?.signal.aborted]).toEqual([steps, true]);
  }
});

test('revoking waits for the handler; what has not begun does not begin', async () => {
  const { arrive, finishAll, live, registry } = createGate();
  const { token, key } = registry.create({});
  const [running, waiting] = [(await arrive(token)).live!, (await arrive(token)).live!];
  let hasEnded = false;
  const work = running.run(async () => {
    await new Promise((resolve) => running.signal.addEventListener('abort', resolve));
    hasEnded = true;
    finishAll();
  });
  await live.end([key.kid]);
  expect(hasEnded).toBe(true);
  await work;
  await expect(waiting.run(() => Promise.reject(new Error('it began')))).rejects.toMatchObject({
    code: 'unauthenticated',
  });
});

test('who has left with a key that does not count has not failed', async () => {
  const { arrive } = createGate();
  for (let n = 0; n <= MAX_FAILURES_PER_MINUTE; n += 1) {
    expect(await arrive('wrong', { hasLeft: true })).toMatchObject({ caller: { scope: 'anonymous' } });
  }
  expect(await arrive('wrong')).toMatchObject({ fault: 'malformed' });
});
