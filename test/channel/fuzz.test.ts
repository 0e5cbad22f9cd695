/** Bytes from strangers, by the hundred thousand: nothing may crash, and nothing may make us hold more than a record. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AnswerReader } from '../../channel/answer-reader.ts';
import { decodeEnvelope, encodeCallHeader } from '../../channel/envelope.ts';
import { startSession } from '../../channel/initiator.ts';
import { asCallKey, asSessionId } from '../../channel/keys.ts';
import type { ReceivedCall } from '../../channel/received-call.ts';
import { RecordOpener } from '../../channel/record-opener.ts';
import { RecordSealer } from '../../channel/record-sealer.ts';
import { bytes, newGateway, newSession, NOW_MS, refusal, sealRequest, sessionOptions, text } from './paired.ts';
import { LONG, seededBytes, seededInteger, times } from './sampling.ts';
import { node } from './watched-crypto.ts';

/** A record with its header, the largest that is allowed. */
const ONE_RECORD_BYTES = 65_557;

const original = globalThis.Uint8Array;
let largestAllocation = 0;

/** Sees every `new Uint8Array(n)` of the code under test, and of the libraries below it. */
beforeAll(() => {
  globalThis.Uint8Array = new Proxy(original, {
    construct(target, args: [unknown], newTarget) {
      if (typeof args[0] === 'number' && args[0] > largestAllocation) largestAllocation = args[0];
      return Reflect.construct(target, args, newTarget) as object;
    },
  });
});
afterAll(() => {
  globalThis.Uint8Array = original;
});

test('the watch over allocations sees one', () => {
  void new Uint8Array(123_456);
  expect(largestAllocation).toBe(123_456);
  largestAllocation = 0;
});

const random = seededBytes('fuzz');
const integer = seededInteger('fuzz');

test('fuzzed envelopes crash nothing, allocate no more than a record, and open nothing', LONG, () => {
  const gateway = newGateway();
  const device = gateway.pair();
  const session = newSession(gateway, device);
  const requests = [sealRequest(session).wire, sealRequest(session, 'x'.repeat(3000)).wire];
  const { message1 } = startSession(sessionOptions(gateway, device));
  const answer = newAnswer();
  largestAllocation = 0;
  const seen = new Map<string, number>();
  const count = times(20_000, 1_000_000);
  for (let i = 0; i < count; i++) {
    const outcome = refusal(() => {
      // A handshake costs a Diffie-Hellman even if it is refused, so there are fewer of them.
      if (i % 50 === 0) gateway.responder.answerSession(mutate(message1), NOW_MS);
      else if (i % 3 === 0) decodeEnvelope(bytes(Uint8Array.of(1, KINDS[integer(KINDS.length)]!), random(integer(64))));
      else if (i % 3 === 1) read(gateway.responder.receiveCall('session'), mutate(requests[integer(2)]!));
      else read(answer.reader(), mutate(answer.wire));
    });
    seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
  }
  const codes = [
    'accepted',
    'call_number',
    'handshake_refused',
    'malformed',
    'record_refused',
    'truncated',
    'unknown_session',
  ];
  expect([...seen.keys()].toSorted()).toEqual(codes);
  expect(largestAllocation).toBeLessThanOrEqual(ONE_RECORD_BYTES);
  expect(gateway.responder.counts('session')).toEqual({ pending: 1, confirmed: 0, retired: 0 });
});

const KINDS = [0x01, 0x02, 0x03, 0x04, 0x11, 0x12, 0x20, 0x21, 0x22, 0x23, 0x7f];

/** Pushes the bytes in two pieces. A hint is all that can come of them. */
function read(call: ReceivedCall | AnswerReader, wire: Uint8Array): void {
  const cut = integer(wire.length + 1);
  for (const piece of [wire.subarray(0, cut), wire.subarray(cut)]) {
    for (const event of call.push(piece, NOW_MS)) expect(event.type).toBe('hint');
  }
  call.end();
}

/** An answer of two records, and any number of readers for it. */
function newAnswer(): { wire: Uint8Array; reader: () => AnswerReader } {
  const key = node.randomBytes(32);
  const header = encodeCallHeader('callAnswer', { sessionId: asSessionId(node.randomBytes(16)), callNumber: 7 });
  const sealer = new RecordSealer(node, asCallKey(new Uint8Array(key)));
  const wire = bytes(header, sealer.sealHead(text('head')), sealer.sealData(text('body'), { last: true }));
  return { wire, reader: () => new AnswerReader(header, new RecordOpener(node, asCallKey(new Uint8Array(key)))) };
}

/** Changes, cuts, lengthens or overwrites something near the beginning, so that it is another message. */
function mutate(message: Uint8Array): Uint8Array {
  const at = 1 + integer(40);
  const changes = [
    () => bytes(message.subarray(0, at), random(1 + integer(8)), message.subarray(at)),
    () => bytes(message.subarray(0, at), random(4), message.subarray(at + 4)),
    () => message.subarray(0, at),
    () => bytes(random(at), message.subarray(at)),
  ];
  const changed = changes[integer(changes.length)]!();
  return Buffer.compare(changed, message) === 0 ? mutate(message) : changed;
}
