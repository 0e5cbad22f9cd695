/** How often a device may make the gateway compute: each so often, all of them together so often. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HINT } from '../../../channel/hint.ts';
import { createHandshakeLimits, HANDSHAKES } from '../../../gateway/sealed/handshake-limits.ts';
import { HintError } from '../../../gateway/sealed/hint-error.ts';
import { createFakeTime } from '../../core/fake-time.ts';
import { runs } from '../../support/sampling.ts';

/** Whether it is let in; whatever refuses does so by the same hint. */
function isLetIn(admit: () => void): boolean {
  try {
    admit();
    return true;
  } catch (error) {
    expect(error instanceof HintError && error.hint).toBe(HINT.rateLimited);
    return false;
  }
}

const count = (tries: number, admit: (at: number) => void): number =>
  Array.from({ length: tries }, (_, at) => isLetIn(() => admit(at))).filter(Boolean).length;

const from = (clientKey: string, name = 'device') => ({ name, source: { clientKey, transport: 'lan' } }) as const;
const relayed = (clientKey: string, name = 'device') => ({ name, source: { clientKey, transport: 'relay' } }) as const;

test('a device has five handshakes in ten seconds from an address, and then five more', () => {
  const { now, sleep } = createFakeTime();
  const limits = createHandshakeLimits(now);
  expect(count(20, () => limits.admit(from('a')))).toBe(HANDSHAKES.perClient);
  sleep(HANDSHAKES.perClientMs - 1);
  expect(count(20, () => limits.admit(from('a')))).toBe(0);
  sleep(1);
  expect(count(20, () => limits.admit(from('a')))).toBe(HANDSHAKES.perClient);
});

test('neither another device at its address nor its own recorded words from elsewhere use up what it has', () => {
  const limits = createHandshakeLimits(createFakeTime().now);
  expect(count(20, () => limits.admit(from('a', 'another device')))).toBe(HANDSHAKES.perClient);
  expect(count(20, () => limits.admit(from('b')))).toBe(HANDSHAKES.perClient);
  expect(count(20, () => limits.admit(from('a')))).toBe(HANDSHAKES.perClient);
});

test('a relay that makes many of one device, by naming its connections anew, leaves room for known devices', () => {
  const limits = createHandshakeLimits(createFakeTime().now);
  limits.met(relayed('earlier', 'known'));
  expect(count(200, (at) => limits.admit(relayed(`${at}`)))).toBe(HANDSHAKES.inAll - HANDSHAKES.forKnown);
  expect(count(20, () => limits.admit(relayed('now', 'known')))).toBe(HANDSHAKES.perClient);
});

test('all together have fifty in a second, of which a quarter is for devices that were here before', () => {
  const { now, sleep } = createFakeTime();
  const limits = createHandshakeLimits(now);
  for (let at = 0; at < 20; at += 1) limits.met(from('a', `known ${at}`));
  const { inAll, forKnown, inAllMs } = HANDSHAKES;
  expect(count(200, (at) => limits.admit(from(`${at}`)))).toBe(inAll - forKnown);
  expect(count(20, (at) => limits.admit(from('a', `known ${at}`)))).toBe(forKnown);
  sleep(inAllMs);
  // Whoever was refused for it has used up nothing.
  expect(count(20, () => limits.admit(from('199')))).toBe(HANDSHAKES.perClient);
});

test('what a relay brings is counted apart, and keeps nobody out who comes without it', () => {
  const limits = createHandshakeLimits(createFakeTime().now);
  expect(count(200, (at) => limits.admit(relayed('', `${at}`)))).toBe(HANDSHAKES.inAll - HANDSHAKES.forKnown);
  expect(count(20, () => limits.admit(from('a')))).toBe(HANDSHAKES.perClient);
});

test('whoever comes whenever, no window of a device or of all lets in more than twice its count', () => {
  const visits = fc.array(fc.record({ clientKey: fc.constantFrom('a', 'b', 'c'), afterMs: fc.nat(3000) }), {
    maxLength: 200,
  });
  const limit = { perClient: 3, perClientMs: 10_000, inAll: 5, inAllMs: 1000, forKnown: 1 };
  fc.assert(
    fc.property(visits, (steps) => {
      const time = createFakeTime();
      const limits = createHandshakeLimits(time.now, limit);
      limits.met(from('a'));
      const admitted: { readonly clientKey: string; readonly atMs: number }[] = [];
      for (const { clientKey, afterMs } of steps) {
        time.sleep(afterMs % 7 === 0 ? afterMs : afterMs % 50);
        if (isLetIn(() => limits.admit(from(clientKey)))) admitted.push({ clientKey, atMs: time.now() });
      }
      for (const { clientKey, atMs } of admitted) {
        const inWindow = (lengthMs: number) => admitted.filter((one) => one.atMs >= atMs && one.atMs < atMs + lengthMs);
        expect(inWindow(limit.inAllMs).length).toBeLessThanOrEqual(2 * limit.inAll);
        const own = inWindow(limit.perClientMs).filter((one) => one.clientKey === clientKey);
        expect(own.length).toBeLessThanOrEqual(2 * limit.perClient);
      }
    }),
    runs(400),
  );
});
