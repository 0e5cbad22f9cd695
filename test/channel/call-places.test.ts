/** The places that a session and its device have for calls: each is taken for as long as its call holds anything. */
import { describe, expect, test } from 'vitest';
import { answerOf, deliver, newGateway, newSession, NOW_MS, refusal, sealRequest, text } from './paired.ts';

const counts = (gateway: ReturnType<typeof newGateway>) => gateway.responder.counts('session');

describe('places for calls', () => {
  /** Opens calls in one new session after the other, the former retired by then, until one is refused. */
  function openCalls(gateway: ReturnType<typeof newGateway>, device: ReturnType<typeof gateway.pair>, wanted: number) {
    const opened = [];
    for (let session = newSession(gateway, device), inSession = 0; opened.length < wanted; inSession++) {
      if (inSession === 32) [session, inSession] = [newSession(gateway, device), 0];
      opened.push(answerOf(deliver(gateway, sealRequest(session).wire)));
    }
    return opened;
  }

  test('of retired sessions are taken until their calls end', () => {
    const gateway = newGateway();
    const device = gateway.pair();
    const opened = openCalls(gateway, device, 128);
    const fifth = newSession(gateway, device);
    expect(refusal(() => deliver(gateway, sealRequest(fifth).wire))).toBe('too_many_calls');
    expect(counts(gateway)).toMatchObject({ confirmed: 4, retired: 1 });
    expect(deliver(gateway, sealRequest(newSession(gateway, gateway.pair())).wire)).toHaveLength(3);
    opened[0]!.records.sealAbort(text('done'));
    expect(deliver(gateway, sealRequest(fifth).wire)).toHaveLength(3);
    expect(refusal(() => deliver(gateway, sealRequest(fifth).wire))).toBe('too_many_calls');
  });

  test('are kept beyond the last record while somebody holds the call', () => {
    const gateway = newGateway();
    const session = newSession(gateway, gateway.pair());
    const received = gateway.responder.receiveCall('session');
    const { records } = answerOf([...received.push(sealRequest(session).wire, NOW_MS)]);
    received.hold();
    records.sealHead(text('h'), { last: true });
    expect(received).toMatchObject({ isOver: true, isOpen: true });
    for (let count = 1; count < 32; count++) answerOf(deliver(gateway, sealRequest(session).wire));
    expect(refusal(() => deliver(gateway, sealRequest(session).wire))).toBe('too_many_calls');
    received.release();
    expect(deliver(gateway, sealRequest(session).wire)).toHaveLength(3);
  });
});
