/** The frames' codec: one encoding for each, and nothing else is read. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { RELAY_CODE, RelayError } from '../../relay/wire/codes.ts';
import {
  dataStream,
  decodeFrame,
  encodeFrame,
  hasEnd,
  HEADER_BYTES,
  MAX_FRAME_BYTES,
  type Frame,
} from '../../relay/wire/frame.ts';
import { isRelayOrigin, registrationMessage, relayOriginAt } from '../../relay/wire/registration.ts';
import { runs } from '../support/sampling.ts';

const bytes = (length: number): fc.Arbitrary<Uint8Array> => fc.uint8Array({ minLength: length, maxLength: length });
const u16 = fc.integer({ min: 0, max: 0xffff });
const u32 = fc.integer({ min: 0, max: 0xffff_ffff });
const stream = fc.integer({ min: 1, max: 0xffff_ffff });
const window = fc.integer({ min: 1, max: 0x7fff_ffff });
const delay = fc.integer({ min: 0, max: 3_600_000 });
const visible = (maxLength: number): fc.Arbitrary<string> =>
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)), maxLength });
const tagClass = fc.constantFrom('device' as const, 'pairing' as const, 'probe' as const);
const maxStreams = fc.integer({ min: 1, max: 0xffff });

const frames: fc.Arbitrary<Frame> = fc.oneof(
  fc.record({
    type: fc.constant('hello' as const),
    nonce: bytes(32),
    timeMs: fc.maxSafeNat(),
    origin: visible(255),
    connectionWindow: window,
    streamWindow: window,
    maxStreams,
  }),
  fc.record({
    type: fc.constant('register' as const),
    publicKey: bytes(32),
    epoch: fc.maxSafeNat(),
    caps: u16,
    admission: fc.uint8Array({ maxLength: 128 }),
    signature: bytes(64),
  }),
  fc.record({
    type: fc.constant('registered' as const),
    routingId: bytes(15),
    leaseSeconds: u32,
    nodeName: visible(64),
  }),
  fc.record({
    type: fc.constant('allow' as const),
    allowances: fc.array(fc.record({ tag: bytes(16), expiresAtMinute: u32, tagClass }), { minLength: 1 }),
  }),
  fc.record({ type: fc.constant('deny' as const), tags: fc.array(bytes(16)) }),
  fc.record({ type: fc.constant('join' as const), routingId: bytes(15), tag: bytes(16) }),
  fc.record({
    type: fc.constant('joined' as const),
    maxStreams,
    connectionWindow: window,
    streamWindow: window,
    bytesPerSecond: u32,
  }),
  fc.record(
    { type: fc.constant('open' as const), stream, op: fc.integer({ min: 0, max: 255 }), connectionTag: bytes(8) },
    { requiredKeys: ['type', 'stream', 'op'] },
  ),
  fc
    .record({
      type: fc.constant('data' as const),
      stream,
      bytes: fc.uint8Array({ maxLength: 300 }),
      isEnd: fc.boolean(),
    })
    .filter((frame) => frame.isEnd || frame.bytes.length > 0),
  fc.record({ type: fc.constant('window' as const), stream: u32, credit: window }),
  fc.record({ type: fc.constant('reset' as const), stream, code: u16 }),
  fc.record({ type: fc.constantFrom('ping' as const, 'pong' as const), bytes: bytes(8) }),
  fc.record({ type: fc.constant('goaway' as const), code: u16, minMs: delay, spreadMs: delay, url: visible(255) }),
  fc.record({ type: fc.constant('error' as const), code: u16 }),
);

function refused(message: Uint8Array): boolean {
  try {
    decodeFrame(message);
    return false;
  } catch (error) {
    return error instanceof RelayError && error.code === RELAY_CODE.protocol;
  }
}

const hex = (message: Uint8Array): string => Buffer.from(message).toString('hex');

describe('a frame', () => {
  test('is read as it was written', () => {
    fc.assert(
      fc.property(frames, (frame) => {
        expect(decodeFrame(encodeFrame(frame))).toEqual(frame);
      }),
      runs(20_000),
    );
  });

  test('has one encoding: whatever is read is written as the same bytes', () => {
    const near = fc.tuple(frames, u16, fc.integer({ min: 1, max: 255 })).map(([frame, at, flip]) => {
      const message = encodeFrame(frame);
      const place = at % message.length;
      message[place] = message[place]! ^ flip;
      return message;
    });
    fc.assert(
      fc.property(fc.oneof(near, fc.uint8Array({ maxLength: 400 })), (message) => {
        const frame = refused(message) ? undefined : decodeFrame(message);
        // The relay's short way of reading data finds the same, and nothing else.
        expect(dataStream(message)).toBe(frame?.type === 'data' ? frame.stream : 0);
        if (frame?.type === 'data') expect(hasEnd(message)).toBe(frame.isEnd);
        if (!refused(message)) expect(hex(encodeFrame(decodeFrame(message)))).toBe(hex(message));
      }),
      runs(40_000),
    );
  });

  test('that is cut is refused, or is a shorter one of a kind that has any length', () => {
    fc.assert(
      fc.property(frames, (frame) => {
        const message = encodeFrame(frame);
        for (let length = 0; length < message.length; length += 1) {
          const cut = message.slice(0, length);
          if (!refused(cut)) expect(['data', 'deny', 'allow', 'open']).toContain(frame.type);
        }
      }),
      runs(1000),
    );
  });

  test('with a byte too many is refused, but for data', () => {
    fc.assert(
      fc.property(
        frames.filter((frame) => frame.type !== 'data'),
        (frame) => refused(Uint8Array.of(...encodeFrame(frame), 0)),
      ),
      runs(2000),
    );
  });
});

test('the bytes are those of the layout', () => {
  const tag = new Uint8Array(16).fill(0xaa);
  const spelled: readonly (readonly [Frame, string])[] = [
    [{ type: 'open', stream: 1, op: 3 }, '10000000000103'],
    [{ type: 'open', stream: 2, op: 0x11, connectionTag: new Uint8Array(8).fill(7) }, '100000000002110707070707070707'],
    [{ type: 'data', stream: 0x01020304, bytes: Uint8Array.of(1, 2), isEnd: true }, '1101010203040102'],
    [{ type: 'window', stream: 0, credit: 65_536 }, '12000000000000010000'],
    [{ type: 'reset', stream: 5, code: 9 }, '1300000000050009'],
    [{ type: 'goaway', code: 12, minMs: 1000, spreadMs: 10_000, url: '' }, '160000000000000c000003e8000027100000'],
    [
      { type: 'allow', allowances: [{ tag, expiresAtMinute: 258, tagClass: 'pairing' }] },
      `040000000000${'aa'.repeat(16)}0000010201`,
    ],
    [{ type: 'deny', tags: [] }, '050000000000'],
  ];
  for (const [frame, text] of spelled) expect(hex(encodeFrame(frame))).toBe(text);
});

test('what a registration signs begins with a label of its own and takes in every field', () => {
  const context = { origin: 'wss://relay.example', nonce: new Uint8Array(32).fill(1) };
  const message = registrationMessage(context, { epoch: 258, caps: 1, admission: Uint8Array.of(9) });
  expect(hex(message)).toBe(
    hex(Buffer.from('svc-v1 relay register')) +
      '0013' +
      hex(Buffer.from(context.origin)) +
      '01'.repeat(32) +
      '0000000000000102' +
      '0001' +
      '000109',
  );
});

test.each([
  ['wss', 'relay.example', 443, 'wss://relay.example'],
  ['wss', 'relay.example', 80, 'wss://relay.example:80'],
  ['ws', '10.0.0.1', 80, 'ws://10.0.0.1'],
  ['ws', '::1', 443, 'ws://[::1]:443'],
  ['ws', '::1', 80, 'ws://[::1]'],
] as const)('a relay on %s, %s, %i is known as %s, and by no other form of it', (scheme, host, port, origin) => {
  expect(relayOriginAt(scheme, host, port)).toBe(origin);
  expect(isRelayOrigin(origin)).toBe(true);
  const others = [`${origin}/`, origin.toUpperCase(), ` ${origin}`, `${origin}?`, origin.replace('//', '//me@')];
  if (!/:\d+$/u.test(origin)) others.push(`${origin}:${port}`, `${origin}:0`, `${origin}:`);
  expect(others.filter(isRelayOrigin)).toEqual([]);
});

test.each([
  ['a message of nothing', ''],
  ['a header alone', '1000000000'],
  ['an unknown type', '180000000000'],
  ['a flag on a frame that has none', '1401000000000102030405060708'],
  ['an unknown flag on data', '110200000001aa'],
  ['data without bytes and without END', '110000000001'],
  ['data on the connection itself', '110000000000aa'],
  ['a stream that a control frame has not', '1700000000010001'],
  ['a window of nothing', '12000000000100000000'],
  ['a window beyond 31 bits', '120000000001ffffffff'],
  ['an unknown class of tags', `040000000000${'00'.repeat(20)}03`],
  ['an ALLOW of nobody', '040000000000'],
  ['an op with half a connection tag', '1000000000010301020304'],
  ['a GOAWAY that lasts for weeks', '160000000000000cffffffff000000000000'],
  ['a url with a control character', '160000000000000c000000000000000000011b'],
])('%s is refused', (_name, text) => {
  expect(refused(Buffer.from(text, 'hex'))).toBe(true);
});

test('a frame over the limit is refused, one at the limit is read', () => {
  const most = new Uint8Array(MAX_FRAME_BYTES - HEADER_BYTES);
  expect(decodeFrame(encodeFrame({ type: 'data', stream: 1, bytes: most, isEnd: false }))).toMatchObject({ stream: 1 });
  const over = Buffer.concat([encodeFrame({ type: 'data', stream: 1, bytes: most, isEnd: false }), Buffer.of(0)]);
  expect(refused(over)).toBe(true);
});

test.each<readonly [string, Frame]>([
  ['a nonce too short', { type: 'join', routingId: new Uint8Array(14), tag: new Uint8Array(16) }],
  ['a number too large', { type: 'reset', stream: 1, code: 65_536 }],
  ['a stream 0', { type: 'reset', stream: 0, code: 1 }],
  ['a stream beyond 32 bits', { type: 'reset', stream: 2 ** 32, code: 1 }],
  ['data too long', { type: 'data', stream: 1, bytes: new Uint8Array(32_769), isEnd: false }],
  ['a text that is not ASCII', { type: 'goaway', code: 1, minMs: 0, spreadMs: 0, url: 'wss://ä' }],
])('our own mistake is a RangeError: %s', (_name, frame) => {
  expect(() => encodeFrame(frame)).toThrow(RangeError);
});
