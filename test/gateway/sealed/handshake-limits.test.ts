/** How often anybody may make the gateway compute: each source so often, all of them together so often. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { HINT } from '../../../channel/hint.ts';
import {
  createHandshakeLimits,
  FAILED_CALLS_PER_MINUTE,
  FAILED_PAIRINGS_PER_MINUTE,
  HANDSHAKES,
} from '../../../gateway/sealed/handshake-limits.ts';
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

const lan = (party: string) => ({ party, transport: 'lan' }) as const;

test('a source has five handshakes in ten seconds, and then five more', () => {
  const { now, sleep } = createFakeTime();
  const limits = createHandshakeLimits(now);
  expect(count(20, () => limits.admitHandshake(lan('a')))).toBe(HANDSHAKES.perParty);
  expect(count(20, () => limits.admitHandshake(lan('b')))).toBe(HANDSHAKES.perParty);
  sleep(HANDSHAKES.perPartyMs - 1);
  expect(count(20, () => limits.admitHandshake(lan('a')))).toBe(0);
  sleep(1);
  expect(count(20, () => limits.admitHandshake(lan('a')))).toBe(HANDSHAKES.perParty);
});

test('all sources together have fifty in a second, and whoever was refused for it has used up nothing', () => {
  const { now, sleep } = createFakeTime();
  const limits = createHandshakeLimits(now);
  expect(count(200, (at) => limits.admitHandshake(lan(`${at}`)))).toBe(HANDSHAKES.inAll);
  expect(count(20, () => limits.admitHandshake(lan('199')))).toBe(0);
  sleep(HANDSHAKES.inAllMs);
  expect(count(20, () => limits.admitHandshake(lan('199')))).toBe(HANDSHAKES.perParty);
});

test('failures are counted, and only they: a source with five of a pairing, or 120 of a call, waits a minute', () => {
  const { now, sleep } = createFakeTime();
  const limits = createHandshakeLimits(now);
  const failures = [
    [FAILED_PAIRINGS_PER_MINUTE, (party: string) => limits.admitPairing(party), () => limits.pairingFailed('a')],
    [FAILED_CALLS_PER_MINUTE, (party: string) => limits.admitCall(party), () => limits.callFailed('a')],
  ] as const;
  for (const [limit, admit, failed] of failures) {
    expect(count(1000, () => admit('a'))).toBe(1000);
    for (let at = 0; at < limit - 1; at++) failed();
    expect(isLetIn(() => admit('a'))).toBe(true);
    failed();
    expect(isLetIn(() => admit('a'))).toBe(false);
    expect(isLetIn(() => admit('b'))).toBe(true);
  }
  sleep(60_000);
  for (const [, admit] of failures) expect(isLetIn(() => admit('a'))).toBe(true);
});

test('what a relay brings is counted apart, and keeps nobody out who comes without it', () => {
  const { now } = createFakeTime();
  const limits = createHandshakeLimits(now);
  const relayed = (party: string) => ({ party, transport: 'relay' }) as const;
  expect(count(200, (at) => limits.admitHandshake(relayed(`${at}`)))).toBe(HANDSHAKES.inAll);
  expect(count(20, () => limits.admitHandshake(lan('a')))).toBe(HANDSHAKES.perParty);
});

test('whoever comes whenever, no window of a source or of all lets in more than twice its count', () => {
  const visits = fc.array(fc.record({ party: fc.constantFrom('a', 'b', 'c'), afterMs: fc.nat(3000) }), {
    maxLength: 200,
  });
  const limit = { perParty: 3, perPartyMs: 10_000, inAll: 5, inAllMs: 1000 };
  fc.assert(
    fc.property(visits, (steps) => {
      const time = createFakeTime();
      const limits = createHandshakeLimits(time.now, limit);
      const admitted: { readonly party: string; readonly atMs: number }[] = [];
      for (const { party, afterMs } of steps) {
        time.sleep(afterMs % 7 === 0 ? afterMs : afterMs % 50);
        if (isLetIn(() => limits.admitHandshake(lan(party)))) admitted.push({ party, atMs: time.now() });
      }
      for (const { party, atMs } of admitted) {
        const inWindow = (lengthMs: number) => admitted.filter((one) => one.atMs >= atMs && one.atMs < atMs + lengthMs);
        expect(inWindow(limit.inAllMs).length).toBeLessThanOrEqual(2 * limit.inAll);
        const own = inWindow(limit.perPartyMs).filter((one) => one.party === party);
        expect(own.length).toBeLessThanOrEqual(2 * limit.perParty);
      }
    }),
    runs(400),
  );
});
