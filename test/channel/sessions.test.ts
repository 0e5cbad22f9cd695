import { describe, expect, test } from 'vitest';
import { equalBytes } from '../../channel/bytes.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { encodeCallHeader } from '../../channel/envelope.ts';
import { decodeAbortReason } from '../../channel/head.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { startSession } from '../../channel/initiator.ts';
import { answerOf, bytes, deliver, newGateway, newKey, newSession, NOW_MS, pushAll, refusal } from './paired.ts';
import { sealRequest, sessionOptions, text } from './paired.ts';
import { seededInteger, THOROUGH } from './sampling.ts';
import { node } from './watched-crypto.ts';

const MINUTE_MS = 60_000;
const pick = seededInteger('sessions');
const counts = (gateway: ReturnType<typeof newGateway>) => gateway.responder.counts('session');

test('a call goes through, and its answer comes back', () => {
  const gateway = newGateway();
  const { call, wire } = sealRequest(newSession(gateway, gateway.pair()));
  const received = gateway.responder.receiveCall('session');
  const events = [...wire].flatMap((byte) => [...received.push(Uint8Array.of(byte), NOW_MS)]);
  received.end();
  expect(events.map(({ type }) => type)).toEqual(['head', 'data', 'end']);
  const { header, records } = answerOf(events);
  const answer = bytes(header, records.sealHead(text('200')), ...records.sealBody(text('hello')));
  const answered = [...answer].flatMap((byte) => [...call.answer.push(Uint8Array.of(byte))]);
  call.answer.end();
  expect(answered.map((event) => ('data' in event ? Buffer.from(event.data).toString() : event.type))).toEqual([
    '200',
    'hello',
    'end',
  ]);
  expect(received.isOver).toBe(true);
});

describe('call numbers', () => {
  const gateway = newGateway();
  const session = newSession(gateway, gateway.pair());
  const first = sealRequest(session);
  deliver(gateway, first.wire);

  test('a replayed request is refused', () => expect(refusal(() => deliver(gateway, first.wire))).toBe('call_number'));

  test('a number out of range is refused before any key is derived', () => {
    let derived = 0;
    const counting: Crypto = { ...node, hmacSha256: (key, message) => (derived++, node.hmacSha256(key, message)) };
    const other = newGateway(counting);
    const { sessionId } = newSession(other, other.pair()).terms;
    derived = 0;
    for (const callNumber of [4096, 4097, 65_536, 2 ** 31, 2 ** 32 - 1]) {
      const header = encodeCallHeader('callRequest', { sessionId, callNumber });
      expect(refusal(() => deliver(other, bytes(header, new Uint8Array(300))))).toBe('call_number');
    }
    expect(derived).toBe(0);
  });

  test('numbers may be used in any order, each once, to the last', () => {
    const requests = Array.from({ length: 4095 }, () => sealRequest(session));
    expect(session.openCall(NOW_MS)).toBeUndefined();
    for (const { wire } of requests.toReversed()) answerOf(deliver(gateway, wire)).records.erase();
    const replayed = requests.filter(({ wire }) => refusal(() => deliver(gateway, wire)) !== 'call_number');
    expect(replayed).toEqual([]);
  });

  test('of two streams with one number, one gets an answer', () => {
    const { call, records, wire } = sealRequest(newSession(gateway, gateway.pair()));
    const [one, two] = [gateway.responder.receiveCall('session'), gateway.responder.receiveCall('session')];
    const head = bytes(call.header, records[0]!);
    expect([...one.push(head.subarray(0, -1), NOW_MS), ...two.push(head.subarray(0, -1), NOW_MS)]).toEqual([]);
    expect([...two.push(head.subarray(-1), NOW_MS)].map(({ type }) => type)).toEqual(['head']);
    expect(refusal(() => [...one.push(head.subarray(-1), NOW_MS)])).toBe('call_number');
    expect(refusal(() => pushAll(one, wire))).toBe('record_refused');
    expect([...two.push(records[1]!, NOW_MS)].map(({ type }) => type)).toEqual(['data', 'end']);
  });

  test('a request that does not authenticate spends nothing', () => {
    const { wire } = sealRequest(newSession(gateway, gateway.pair()));
    const changed = new Uint8Array(wire);
    changed[40]! ^= 1;
    expect(refusal(() => deliver(gateway, changed))).toBe('record_refused');
    expect(deliver(gateway, wire)).toHaveLength(3);
  });
});

test('no bit of a request can be flipped', () => {
  const gateway = newGateway();
  const device = gateway.pair();
  let session = newSession(gateway, device);
  const wireBytes = sealRequest(session).wire.length;
  const accepted: number[] = [];
  let requests = 0;
  for (let bit = 0; bit < wireBytes * 8; bit += THOROUGH ? 1 : 8 - (bit % 8) + pick(8)) {
    // Another request each time: a bad second record comes after a good first one, which has spent the number.
    if (++requests % 4000 === 0) session = newSession(gateway, device);
    const { wire } = sealRequest(session);
    wire[bit >> 3]! ^= 1 << (bit & 7);
    const code = refusal(() => deliver(gateway, wire));
    if (!['malformed', 'unknown_session', 'call_number', 'record_refused', 'truncated'].includes(code))
      accepted.push(bit);
  }
  expect(accepted).toEqual([]);
  expect(deliver(gateway, sealRequest(session).wire)).toHaveLength(3);
});

describe('records cannot be spliced', () => {
  const gateway = newGateway();
  const device = gateway.pair();
  const session = newSession(gateway, device);
  const request = sealRequest(session);

  test('from another call of the session', () => {
    const other = sealRequest(session);
    const spliced = bytes(request.call.header, request.records[0]!, other.records[1]!);
    expect(refusal(() => deliver(gateway, spliced))).toBe('record_refused');
    expect(refusal(() => deliver(gateway, bytes(request.call.header, ...other.records)))).toBe('call_number');
  });

  test('from another session of the device', () => {
    const other = sealRequest(newSession(gateway, device));
    const mine = sealRequest(session);
    expect(refusal(() => deliver(gateway, bytes(mine.call.header, ...other.records)))).toBe('record_refused');
  });

  test('from the other direction', () => {
    const { call, wire } = sealRequest(session);
    expect(
      refusal(() => [
        ...call.answer.push(bytes(encodeCallHeader('callAnswer', headerOf(session, call)), wire.subarray(22))),
      ]),
    ).toBe('record_refused');
    const answered = answerOf(deliver(gateway, wire));
    const next = sealRequest(session);
    const echo = bytes(next.call.header, answered.records.sealHead(text('h')));
    expect(refusal(() => deliver(gateway, echo))).toBe('record_refused');
  });

  test('as the answer to another call', () => {
    const [one, two] = [sealRequest(session), sealRequest(session)];
    const { header, records } = answerOf(deliver(gateway, one.wire));
    const record = records.sealHead(text('h'), { last: true });
    expect(refusal(() => [...two.call.answer.push(bytes(header, record))])).toBe('malformed');
    const third = sealRequest(session);
    const relabelled = encodeCallHeader('callAnswer', headerOf(session, third.call));
    expect(refusal(() => [...third.call.answer.push(bytes(relabelled, record))])).toBe('record_refused');
  });

  function headerOf(of: InitiatorSession, { callNumber }: { callNumber: number }) {
    return { sessionId: of.terms.sessionId, callNumber };
  }
});

describe('pending sessions', () => {
  test('the same message 1 gets the same message 2 and makes no other session', () => {
    const gateway = newGateway();
    const { message1 } = startSession(sessionOptions(gateway, gateway.pair()));
    const first = gateway.responder.answerSession(message1, NOW_MS);
    expect(gateway.responder.answerSession(message1, NOW_MS)).toBe(first);
    expect(counts(gateway)).toEqual({ pending: 1, confirmed: 0, retired: 0 });
    const later = gateway.responder.answerSession(message1, NOW_MS + 30_000);
    expect(equalBytes(later, first)).toBe(false);
  });

  test('message 1 replayed a thousand times, in time and over time, harms nobody', () => {
    const gateway = newGateway();
    const device = gateway.pair();
    const recorded = Array.from({ length: 100 }, () => startSession(sessionOptions(gateway, device)).message1);
    const session = newSession(gateway, device);
    deliver(gateway, sealRequest(session).wire);
    for (let i = 0; i < 1000; i++) {
      gateway.responder.answerSession(recorded[i % recorded.length]!, NOW_MS + i * 500);
      gateway.responder.sweep(NOW_MS + i * 500);
      expect(counts(gateway).pending).toBeLessThanOrEqual(8);
    }
    expect(counts(gateway).confirmed).toBe(1);
    expect(deliver(gateway, sealRequest(session).wire)).toHaveLength(3);
  });

  test('there are at most 8 of a device, and its own oldest goes first', () => {
    const gateway = newGateway();
    const [device, other] = [gateway.pair(), gateway.pair()];
    const others = newSession(gateway, other);
    const sessions = Array.from({ length: 9 }, () => newSession(gateway, device));
    expect(counts(gateway).pending).toBe(9);
    expect(refusal(() => deliver(gateway, sealRequest(sessions[0]!).wire))).toBe('unknown_session');
    for (const session of [others, ...sessions.slice(5)])
      expect(deliver(gateway, sealRequest(session).wire)).toHaveLength(3);
  });

  test('there are at most 64 in all, and the oldest of whoever holds most goes', () => {
    const gateway = newGateway();
    const greedy = Array.from({ length: 8 }, () => gateway.pair());
    const sessions = greedy.map((device, index) =>
      Array.from({ length: index === 3 ? 8 : 7 }, () => newSession(gateway, device)),
    );
    const others = Array.from({ length: 7 }, () => newSession(gateway, gateway.pair()));
    expect(counts(gateway).pending).toBe(64);
    others.push(newSession(gateway, gateway.pair()));
    expect(counts(gateway).pending).toBe(64);
    expect(refusal(() => deliver(gateway, sealRequest(sessions[3]![0]!).wire))).toBe('unknown_session');
    for (const session of [...others, sessions[3]![1]!, sessions[0]![0]!]) {
      expect(deliver(gateway, sealRequest(session).wire)).toHaveLength(3);
    }
  });

  test('those that are overdue crowd nobody out', () => {
    const gateway = newGateway(node, { pending: 3 });
    for (let i = 0; i < 2; i++) newSession(gateway, gateway.pair());
    const device = gateway.pair();
    const laterMs = NOW_MS + 29_000;
    const [one, two] = [newSession(gateway, device, laterMs), newSession(gateway, device, laterMs + 1000)];
    expect(counts(gateway).pending).toBe(2);
    for (const session of [one, two])
      expect(deliver(gateway, sealRequest(session).wire, laterMs + 1000)).toHaveLength(3);
  });

  test('one lives for 30 seconds, and no longer because its call began in time', () => {
    const gateway = newGateway();
    const [inTime, late] = [
      sealRequest(newSession(gateway, gateway.pair())),
      sealRequest(newSession(gateway, gateway.pair())),
    ];
    expect(deliver(gateway, inTime.wire, NOW_MS + 29_999)).toHaveLength(3);
    const call = gateway.responder.receiveCall('session');
    expect([...call.push(late.wire.subarray(0, -1), NOW_MS + 29_999)].map(({ type }) => type)).toEqual(['head']);
    const other = sealRequest(newSession(gateway, gateway.pair()));
    const slow = gateway.responder.receiveCall('session');
    expect([...slow.push(other.wire.subarray(0, 30), NOW_MS + 29_999)]).toEqual([]);
    expect(refusal(() => [...slow.push(other.wire.subarray(30), NOW_MS + 30_000)])).toBe('unknown_session');
    expect(refusal(() => deliver(gateway, other.wire, NOW_MS + 30_000))).toBe('unknown_session');
    gateway.responder.sweep(NOW_MS + 30_000);
    expect(counts(gateway)).toEqual({ pending: 0, confirmed: 2, retired: 0 });
  });
});

describe('confirmed sessions', () => {
  test('a device has four; the oldest makes room, and its running call goes on', () => {
    const gateway = newGateway();
    const device = gateway.pair();
    const sessions = Array.from({ length: 5 }, () => newSession(gateway, device));
    const first = sealRequest(sessions[0]!);
    const { header, records } = answerOf(deliver(gateway, first.wire));
    for (const session of sessions.slice(1)) answerOf(deliver(gateway, sealRequest(session).wire)).records.erase();
    expect(counts(gateway)).toEqual({ pending: 0, confirmed: 4, retired: 1 });
    expect(refusal(() => deliver(gateway, sealRequest(sessions[0]!).wire))).toBe('unknown_session');
    expect([...first.call.answer.push(bytes(header, records.sealHead(text('h'), { last: true })))]).toHaveLength(2);
    gateway.responder.sweep(NOW_MS);
    expect(counts(gateway).retired).toBe(0);
  });

  test('in all there are so many, and whoever was silent for longest goes', () => {
    const gateway = newGateway(node, { confirmed: 3 });
    const sessions = Array.from({ length: 4 }, () => newSession(gateway, gateway.pair()));
    const call = (index: number, afterMs: number) =>
      deliver(gateway, sealRequest(sessions[index]!).wire, NOW_MS + afterMs);
    for (const index of [0, 1, 2]) call(index, index);
    call(0, 3);
    call(3, 4);
    expect(refusal(() => call(1, 5))).toBe('unknown_session');
    expect(call(0, 6)).toHaveLength(3);
  });

  test('no calls after two hours, nor after half an hour without one', () => {
    const gateway = newGateway();
    const idle = newSession(gateway, gateway.pair());
    const busy = newSession(gateway, gateway.pair());
    deliver(gateway, sealRequest(idle).wire);
    const withheld = [sealRequest(idle), sealRequest(busy)];
    for (let minutes = 0; minutes < 120; minutes += 20) {
      // The initiator itself would have stopped after an hour; what it sealed may come later.
      deliver(gateway, sealRequest(busy, 'body', NOW_MS).wire, NOW_MS + minutes * MINUTE_MS);
    }
    expect(refusal(() => deliver(gateway, withheld[0]!.wire, NOW_MS + 30 * MINUTE_MS))).toBe('unknown_session');
    expect(refusal(() => deliver(gateway, withheld[1]!.wire, NOW_MS + 120 * MINUTE_MS))).toBe('unknown_session');
    expect(deliver(gateway, withheld[1]!.wire, NOW_MS + 119 * MINUTE_MS)).toHaveLength(3);
  });

  test('a call may run on for six hours, and is then ended with a word', () => {
    const gateway = newGateway();
    const { call, wire } = sealRequest(newSession(gateway, gateway.pair()));
    const { header, records } = answerOf(deliver(gateway, wire));
    const head = bytes(header, records.sealHead(text('h')));
    expect([...call.answer.push(head)]).toHaveLength(1);
    expect(gateway.responder.sweep(NOW_MS + 121 * MINUTE_MS)).toEqual([]);
    expect(counts(gateway)).toEqual({ pending: 0, confirmed: 0, retired: 1 });
    const [ended, ...others] = gateway.responder.sweep(NOW_MS + 360 * MINUTE_MS);
    expect(others).toEqual([]);
    const [abort] = [...call.answer.push(ended!.lastRecord!)];
    expect(abort?.type === 'abort' && decodeAbortReason(abort.data).code).toBe('expired');
    expect(counts(gateway).retired).toBe(0);
  });

  test('32 calls are open at most, and the number of a refused one is spent', () => {
    const gateway = newGateway();
    const session = newSession(gateway, gateway.pair());
    const running = Array.from({ length: 32 }, () => answerOf(deliver(gateway, sealRequest(session).wire)));
    const refused = sealRequest(session);
    expect(refusal(() => deliver(gateway, refused.wire))).toBe('too_many_calls');
    running[7]!.records.sealAbort(text('done'));
    expect(refusal(() => deliver(gateway, refused.wire))).toBe('call_number');
    expect(deliver(gateway, sealRequest(session).wire)).toHaveLength(3);
  });
});

describe('revocation', () => {
  test('ends sessions, pending and confirmed, and open calls in one step, and nobody else', () => {
    const gateway = newGateway();
    const [device, bystander] = [gateway.pair(), gateway.pair()];
    const [confirmed, pending, other] = [
      newSession(gateway, device),
      newSession(gateway, device),
      newSession(gateway, bystander),
    ];
    const running = sealRequest(confirmed);
    const { header } = answerOf(deliver(gateway, running.wire));
    const half = sealRequest(confirmed);
    const halfway = gateway.responder.receiveCall('session');
    expect([...halfway.push(half.wire.subarray(0, 40), NOW_MS)]).toEqual([]);
    gateway.forget(device);
    const ended = gateway.responder.revoke(device.staticKey.publicKey);
    expect(ended).toHaveLength(1);
    const [event] = [...running.call.answer.push(bytes(header, ended[0]!.lastRecord!))];
    expect(event?.type === 'abort' && decodeAbortReason(event.data).code).toBe('revoked');
    expect(refusal(() => [...halfway.push(half.wire.subarray(40), NOW_MS)])).toBe('unknown_session');
    for (const session of [confirmed, pending]) {
      expect(refusal(() => deliver(gateway, sealRequest(session).wire))).toBe('unknown_session');
    }
    expect(deliver(gateway, sealRequest(other).wire)).toHaveLength(3);
  });

  test('a shutdown ends everybody', () => {
    const gateway = newGateway();
    const sessions = [newSession(gateway, gateway.pair()), newSession(gateway, gateway.pair())];
    for (const session of sessions) deliver(gateway, sealRequest(session).wire);
    expect(gateway.responder.shutDown()).toHaveLength(2);
    expect(counts(gateway)).toEqual({ pending: 0, confirmed: 0, retired: 0 });
  });
});

describe('sessions of one kind do not exist for another', () => {
  const gateway = newGateway();
  const psk = gateway.pair().psk;
  const inviteId = new Uint8Array(16).fill(7);

  test('a pairing session only takes pairing calls, and a normal one never does', () => {
    const purpose = { kind: 'invite', inviteId } as const;
    const started = startSession({ ...sessionOptions(gateway, { staticKey: newKey(node), psk }), purpose });
    const message2 = gateway.responder.answerPairing({ purpose, psk }, started.message1, NOW_MS);
    const pairing = sealRequest(started.finish(message2, NOW_MS));
    expect(refusal(() => deliver(gateway, pairing.wire))).toBe('unknown_session');
    expect(refusal(() => pushAll(gateway.responder.receiveCall('discovery'), pairing.wire))).toBe('unknown_session');
    expect(pushAll(gateway.responder.receiveCall('invite'), pairing.wire)).toHaveLength(3);
    const normal = sealRequest(newSession(gateway, gateway.pair()));
    expect(refusal(() => pushAll(gateway.responder.receiveCall('invite'), normal.wire))).toBe('unknown_session');
    expect(deliver(gateway, normal.wire)).toHaveLength(3);
  });

  test('a pairing with the wrong secret, or for another invite, is refused', () => {
    const purpose = { kind: 'invite', inviteId } as const;
    const { message1 } = startSession({ ...sessionOptions(gateway, { staticKey: newKey(node), psk }), purpose });
    const other = { kind: 'invite', inviteId: new Uint8Array(16).fill(8) } as const;
    const wrong = gateway.pair().psk;
    const answer = (pairing: Parameters<typeof gateway.responder.answerPairing>[0]): string =>
      refusal(() => gateway.responder.answerPairing(pairing, message1, NOW_MS));
    expect(answer({ purpose, psk: wrong })).toBe('handshake_refused');
    expect(answer({ purpose: other, psk })).toBe('handshake_refused');
    expect(answer({ purpose, psk })).toBe('accepted');
    // Known by then, but only as a message for the first invite.
    expect(answer({ purpose: other, psk })).toBe('handshake_refused');
    expect(() =>
      gateway.responder.answerPairing({ purpose: { kind: 'invite', inviteId: new Uint8Array(3) }, psk }, message1, 0),
    ).toThrow(RangeError);
  });
});

describe('the initiator', () => {
  test('moves to another session after an hour, or after being idle', () => {
    const gateway = newGateway();
    const device = gateway.pair();
    expect(newSession(gateway, device).openCall(NOW_MS + 60 * MINUTE_MS)).toBeUndefined();
    const session = newSession(gateway, device);
    expect(session.openCall(NOW_MS + 29 * MINUTE_MS)).toBeDefined();
    expect(session.openCall(NOW_MS + 58 * MINUTE_MS)).toBeDefined();
    expect(session.openCall(NOW_MS + 60 * MINUTE_MS)).toBeUndefined();
    expect(session.openCall(NOW_MS)).toBeUndefined();
    expect(newSession(gateway, device).openCall(NOW_MS + 30 * MINUTE_MS)).toBeUndefined();
  });

  test('a retired session opens no call, and its running ones go on', () => {
    const gateway = newGateway();
    const session = newSession(gateway, gateway.pair());
    const { call, wire } = sealRequest(session);
    session.retire();
    expect(session.openCall(NOW_MS)).toBeUndefined();
    const { header, records } = answerOf(deliver(gateway, wire));
    expect([...call.answer.push(bytes(header, records.sealHead(text('h'), { last: true })))]).toHaveLength(2);
  });

  test('gets a hint instead of an answer, and nothing after it', () => {
    const gateway = newGateway();
    const { call } = sealRequest(newSession(gateway, gateway.pair()));
    const events = [1, 0x7f, 0, 3].flatMap((byte) => [...call.answer.push(Uint8Array.of(byte))]);
    expect(events).toEqual([{ type: 'hint', code: 3 }]);
    call.answer.end();
    expect(refusal(() => [...call.answer.push(Uint8Array.of(0))])).toBe('malformed');
  });

  test('takes neither half a hint nor half a header for an answer', () => {
    const gateway = newGateway();
    for (const start of [[], [1], [1, 0x7f], [1, 0x7f, 0], [1, 4]]) {
      const { call } = sealRequest(newSession(gateway, gateway.pair()));
      expect([...call.answer.push(Uint8Array.from(start))]).toEqual([]);
      expect(['truncated', 'record_refused']).toContain(refusal(() => call.answer.end()));
    }
  });
});

test('a request that stops in the middle is truncated and its answer impossible', () => {
  const gateway = newGateway();
  const { wire } = sealRequest(newSession(gateway, gateway.pair()));
  for (const length of [0, 1, 21, 22, 23, 300]) {
    const call = gateway.responder.receiveCall('session');
    expect(refusal(() => pushAll(call, wire.subarray(0, length)))).toBe('truncated');
    expect(call.isOver).toBe(true);
  }
});

test('a call that was answered early takes no more of its request', () => {
  const gateway = newGateway();
  const { call, records } = sealRequest(newSession(gateway, gateway.pair()));
  const received = gateway.responder.receiveCall('session');
  const head = [...received.push(bytes(call.header, records[0]!), NOW_MS)];
  answerOf(head).records.sealHead(text('413'), { last: true });
  expect(received.isOver).toBe(true);
  expect(gateway.responder.shutDown()).toEqual([]);
  expect(refusal(() => [...received.push(records[1]!, NOW_MS)])).toBe('record_refused');
});

test('a device that gives up in its first record gets no answer', () => {
  const gateway = newGateway();
  const call = newSession(gateway, gateway.pair()).openCall(NOW_MS)!;
  const received = gateway.responder.receiveCall('session');
  const events = [...received.push(bytes(call.header, call.request.sealAbort(text('{}'))), NOW_MS)];
  expect(events.map(({ type }) => type)).toEqual(['abort']);
  expect(received.isOver).toBe(true);
  received.end();
  expect(refusal(() => [...received.push(Uint8Array.of(0), NOW_MS)])).toBe('record_refused');
});
