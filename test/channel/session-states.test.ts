/** Each thing that can happen to a session, in each state that it can be in. */
import { describe, expect, test } from 'vitest';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { SESSION_LIMITS } from '../../channel/session-limits.ts';
import type { SessionEvent, SessionState } from '../../channel/session-states.ts';
import { deliver, newGateway, newSession, NOW_MS, refusal, sealRequest, type Device, type Gateway } from './paired.ts';

interface Case {
  readonly gateway: Gateway;
  readonly device: Device;
  readonly session: InitiatorSession;
}

const EXPIRED_MS = NOW_MS + SESSION_LIMITS.expiresAfterMs;

/** A call that is begun, and whose answer is still to come. */
const call = ({ gateway, session }: Case, nowMs = NOW_MS): string =>
  refusal(() => deliver(gateway, sealRequest(session).wire, nowMs));

function reach(state: SessionState): Case {
  const gateway = newGateway();
  const device = gateway.pair();
  const reached = { gateway, device, session: newSession(gateway, device) };
  if (state === 'confirmed' || state === 'retired') expect(call(reached)).toBe('accepted');
  if (state === 'retired') gateway.responder.sweep(EXPIRED_MS);
  if (state === 'gone') gateway.responder.revoke(device.staticKey.publicKey);
  return reached;
}

function stateOf({ gateway }: Case): SessionState {
  const counts = gateway.responder.counts('session');
  const states = (['pending', 'confirmed', 'retired'] as const).filter((state) => counts[state] > 0);
  expect(states.length).toBeLessThanOrEqual(1);
  return states[0] ?? 'gone';
}

/** Makes it happen. @returns what a call was told */
const HAPPENS: Readonly<Record<SessionEvent, (one: Case) => string | undefined>> = {
  authenticated: (one) => call(one),
  displaced: ({ gateway }) => void gateway.responder.sweep(EXPIRED_MS),
  ended: ({ gateway, device }) => void gateway.responder.revoke(device.staticKey.publicKey),
};

const EXPECTED: Readonly<Record<SessionState, Readonly<Record<SessionEvent, readonly [SessionState, told?: string]>>>> =
  {
    pending: { authenticated: ['confirmed', 'accepted'], displaced: ['gone'], ended: ['gone'] },
    confirmed: { authenticated: ['confirmed', 'accepted'], displaced: ['retired'], ended: ['gone'] },
    // Its time is over already, and its call goes on.
    retired: { authenticated: ['retired', 'unknown_session'], displaced: ['retired'], ended: ['gone'] },
    gone: { authenticated: ['gone', 'unknown_session'], displaced: ['gone'], ended: ['gone'] },
  };

describe.each(Object.entries(EXPECTED))('a session that is %s', (from, events) => {
  test.each(Object.entries(events))('and is %s', (event, [next, told]) => {
    const one = reach(from as SessionState);
    expect(stateOf(one)).toBe(from);
    expect(HAPPENS[event as SessionEvent](one)).toBe(told);
    expect(stateOf(one)).toBe(next);
  });
});

test('one that expires without a call that runs is gone, and one whose calls have ended likewise', () => {
  const idle = reach('confirmed');
  for (const ended of idle.gateway.responder.revoke(idle.device.staticKey.publicKey)) ended.call.kill();
  expect(stateOf(idle)).toBe('gone');
  const late = reach('retired');
  late.gateway.responder.sweep(NOW_MS + SESSION_LIMITS.streamsEndAfterMs);
  expect(stateOf(late)).toBe('gone');
});

test('between the header of a call and its first record a session may be revoked: then nothing is authenticated', () => {
  const one = reach('pending');
  const { call: opened, records } = sealRequest(one.session);
  const received = one.gateway.responder.receiveCall('session');
  expect([...received.push(opened.header, NOW_MS)]).toEqual([]);
  one.gateway.responder.revoke(one.device.staticKey.publicKey);
  expect(refusal(() => [...received.push(records[0] ?? new Uint8Array(0), NOW_MS)])).toBe('unknown_session');
  expect(stateOf(one)).toBe('gone');
});

test('or another session may take its place: it does not come back', () => {
  const one = reach('confirmed');
  const { call: opened, records } = sealRequest(one.session);
  const received = one.gateway.responder.receiveCall('session');
  expect([...received.push(opened.header, NOW_MS)]).toEqual([]);
  for (let other = 0; other < SESSION_LIMITS.confirmedPerKey; other += 1)
    expect(call({ ...one, session: newSession(one.gateway, one.device) })).toBe('accepted');
  const counts = { pending: 0, confirmed: SESSION_LIMITS.confirmedPerKey, retired: 1 };
  expect(one.gateway.responder.counts('session')).toEqual(counts);
  expect(refusal(() => [...received.push(records[0] ?? new Uint8Array(0), NOW_MS)])).toBe('unknown_session');
  expect(one.gateway.responder.counts('session')).toEqual(counts);
});
