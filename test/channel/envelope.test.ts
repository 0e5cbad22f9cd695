import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import type { CallHeader, Envelope } from '../../channel/envelope.ts';
import {
  CALL_HEADER_BYTES,
  decodeCallHeader,
  decodeEnvelope,
  encodeCallHeader,
  encodeEnvelope,
  PROTOCOL_VERSION,
} from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import { HINT, hintOf } from '../../channel/hint.ts';
import { asPublicKey, asSessionId } from '../../channel/keys.ts';
import { formatGatewayId } from '../../channel/gateway-id.ts';
import {
  decodeAbortReason,
  decodeAnswerHead,
  decodeCallHead,
  encodeAbortReason,
  encodeAnswerHead,
  encodeRequestHead,
} from '../../channel/head.ts';
import {
  decodeClientHints,
  decodeSessionTerms,
  encodeClientHints,
  encodePayload,
  encodeSessionTerms,
} from '../../channel/payload.ts';
import { tagDay } from '../../channel/relay-tag.ts';
import { refusal, text } from './paired.ts';
import { runs } from './sampling.ts';

const bytesOf = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const noise = fc.uint8Array({ maxLength: 2000 });
const id = bytesOf(16);

const envelope: fc.Arbitrary<Envelope> = fc.oneof(
  fc.record({ kind: fc.constantFrom('sessionRequest', 'sessionAnswer', 'inviteAnswer', 'discoveryProved'), noise }),
  fc.record({ kind: fc.constant('discoveryCancel' as const), challenge: id }),
  fc.record({ kind: fc.constant('inviteRequest'), inviteId: id, noise }),
  fc.record({ kind: fc.constant('discoveryOpen'), challenge: id, about: noise }),
  fc.record({ kind: fc.constant('discoveryOpened'), share: bytesOf(32) }),
  fc.record({ kind: fc.constant('discoveryProve'), challenge: id, share: bytesOf(32), noise }),
  fc.record({ kind: fc.constant('hint'), code: fc.nat(0xffff) }),
) as fc.Arbitrary<Envelope>;

describe('envelopes', () => {
  test('come back from their bytes', () => {
    fc.assert(
      fc.property(envelope, (value) => {
        expect(decodeEnvelope(encodeEnvelope(value))).toEqual(value);
      }),
      runs(200, 5000),
    );
  });

  test('whatever decodes has no other bytes', () => {
    const kinds = [1, 2, 3, 4, 0x11, 0x12, 0x20, 0x21, 0x22, 0x23, 0x7f];
    const any = fc.tuple(
      fc.constantFrom(0, 1, 2),
      fc.oneof(fc.constantFrom(...kinds), fc.nat(255)),
      fc.uint8Array({ maxLength: 60 }),
    );
    fc.assert(
      fc.property(any, ([version, kind, rest]) => {
        const bytes = Uint8Array.of(version, kind, ...rest);
        const code = refusal(() => expect(encodeEnvelope(decodeEnvelope(bytes))).toEqual(bytes));
        expect(['accepted', 'malformed']).toContain(code);
      }),
      runs(500, 20_000),
    );
  });

  test('cut short, what has a fixed part is refused', () => {
    const values: Envelope[] = [
      { kind: 'discoveryOpen', challenge: new Uint8Array(16), about: text('{}') },
      { kind: 'discoveryOpened', share: new Uint8Array(32) },
      { kind: 'hint', code: 7 },
    ];
    for (const whole of values.map(encodeEnvelope)) {
      for (let length = 0; length < whole.length; length++) {
        expect(refusal(() => decodeEnvelope(whole.subarray(0, length)))).toBe('malformed');
      }
      expect(refusal(() => decodeEnvelope(Uint8Array.of(...whole, 0)))).toBe('malformed');
    }
  });

  test('of another version is refused', () => {
    const bytes = encodeEnvelope({ kind: 'hint', code: 1 });
    expect(refusal(() => decodeEnvelope(bytes.with(0, PROTOCOL_VERSION + 1)))).toBe('malformed');
    expect(refusal(() => decodeEnvelope(bytes.with(0, 0)))).toBe('malformed');
  });

  test('a field of the wrong length is our own mistake', () => {
    expect(() => encodeEnvelope({ kind: 'discoveryOpened', share: new Uint8Array(31) })).toThrow(RangeError);
    expect(() => encodeEnvelope({ kind: 'inviteRequest', inviteId: new Uint8Array(17), noise: text('') })).toThrow(
      RangeError,
    );
    expect(() =>
      encodeEnvelope({ kind: 'discoveryOpen', challenge: new Uint8Array(16), about: new Uint8Array(65_536) }),
    ).toThrow(RangeError);
    expect(() => asPublicKey(new Uint8Array(31))).toThrow(RangeError);
  });
});

test('the header of a call comes back, and is nothing else', () => {
  const header: CallHeader = { sessionId: asSessionId(new Uint8Array(16).fill(9)), callNumber: 0xfedc_ba98 };
  const encoded = encodeCallHeader('callRequest', header);
  expect(encoded).toHaveLength(CALL_HEADER_BYTES);
  expect(decodeCallHeader('callRequest', encoded)).toEqual(header);
  expect(refusal(() => decodeCallHeader('callAnswer', encoded))).toBe('malformed');
  expect(refusal(() => decodeCallHeader('callRequest', encoded.subarray(1)))).toBe('malformed');
  expect(refusal(() => decodeCallHeader('callRequest', encoded.with(0, 2)))).toBe('malformed');
  expect(refusal(() => decodeEnvelope(encoded))).toBe('malformed');
});

test('every failure has a hint, and says no more than its code', () => {
  expect(hintOf('handshake_refused')).toBe(HINT.handshakeRefused);
  expect(hintOf('record_refused')).toBe(hintOf('malformed'));
  expect(new ChannelError('record_refused').message).toBe('record_refused');
});

describe('handshake payloads', () => {
  const terms = {
    sessionId: asSessionId(new Uint8Array(16).fill(255)),
    expiresAfterMs: 7_200_000,
    idleAfterMs: 1_800_000,
    rekeyAfterMs: 3_600_000,
    maxBodyBytes: 33_000_000,
    callNumbers: 4096,
    boot: 'b',
    timeMs: 1_700_000_000_000,
  };

  test('come back, and tell only how many blocks they take', () => {
    expect(decodeSessionTerms(encodeSessionTerms(terms))).toEqual(terms);
    expect(encodeSessionTerms(terms)).toHaveLength(256);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 600 }), fc.string(), (clientVersion, language) => {
        const payload = encodeClientHints({ clientVersion, language });
        expect(payload.length % 256).toBe(0);
        expect(decodeClientHints(payload)).toEqual({ clientVersion, language });
      }),
      runs(100, 2000),
    );
    expect(decodeClientHints(encodeClientHints({ clientVersion: '1' }))).toEqual({ clientVersion: '1' });
    expect(decodeClientHints(encodePayload({}))).toEqual({});
  });

  const refused = (payload: Uint8Array): void =>
    expect(refusal(() => decodeSessionTerms(payload))).toBe('handshake_refused');
  test.each(['sid', 'exp', 'idle', 'rekey', 'maxBody', 'calls', 'boot', 'time'])('without %s are refused', (name) => {
    const json = JSON.parse(
      Buffer.from(encodeSessionTerms(terms)).subarray(2).toString().replaceAll('\0', ''),
    ) as object;
    refused(encodePayload({ ...json, [name]: undefined }));
    refused(encodePayload({ ...json, [name]: -1.5 }));
    refused(encodePayload({ ...json, [name]: null }));
  });
  test('with padding that is not zero are refused', () => refused(encodeSessionTerms(terms).with(255, 1)));
  test('that are no object, or no UTF-8, are refused', () => {
    for (const json of [
      text('[]'),
      text('null'),
      text('1'),
      text('{'),
      Uint8Array.of(0x7b, 0xff, 0x7d),
      text('\u{feff}{}'),
    ]) {
      const payload = new Uint8Array(256);
      payload[1] = json.length;
      payload.set(json, 2);
      refused(payload);
    }
    for (const length of [0, 1, 255, 257]) refused(new Uint8Array(length));
    refused(new Uint8Array(256).fill(255));
  });
  test('of hints are judged too', () => {
    for (const json of [{ cv: 1 }, { cv: null }, { cv: 'a', lang: 1 }]) {
      expect(refusal(() => decodeClientHints(encodePayload(json)))).toBe('handshake_refused');
    }
  });
});

describe('heads', () => {
  const headers = fc.array(fc.tuple(fc.string(), fc.string()));
  const bodyBytes = fc.option(fc.nat());
  const request = fc.record(
    {
      method: fc.string(),
      path: fc.string().map((path) => `/${path}`),
      query: fc.string(),
      headers,
      bodyBytes,
      idempotencyKey: id,
    },
    { requiredKeys: ['method', 'path', 'headers', 'bodyBytes'] },
  );

  test('come back from their bytes', () => {
    fc.assert(
      fc.property(request, (head) => {
        expect(decodeCallHead(encodeRequestHead(head))).toEqual({ kind: 'request', head });
      }),
      runs(100, 2000),
    );
    fc.assert(
      fc.property(fc.record({ status: fc.integer({ min: 200, max: 599 }), headers, bodyBytes }), (head) => {
        expect(decodeAnswerHead(encodeAnswerHead(head))).toEqual(head);
      }),
      runs(100, 2000),
    );
    const reason = { code: 'shutdown', message: 'the gateway is stopping' };
    expect(decodeAbortReason(encodeAbortReason(reason))).toEqual(reason);
  });

  test.each([
    '',
    'null',
    '[]',
    '{"m":1,"p":"/","h":[],"bl":null}',
    '{"m":"GET","p":"x","h":[],"bl":null}',
    '{"m":"GET","p":"/","q":1,"h":[],"bl":null}',
    '{"m":"GET","p":"/","h":{},"bl":null}',
    '{"m":"GET","p":"/","h":[["a"]],"bl":null}',
    '{"m":"GET","p":"/","h":[["a",1]],"bl":null}',
    '{"m":"GET","p":"/","h":[]}',
    '{"m":"GET","p":"/","h":[],"bl":-1}',
    '{"m":"GET","p":"/","h":[],"bl":1.5}',
    '{"m":"GET","p":"/","h":[],"bl":null,"k":"AA"}',
    '{"m":"GET","p":"/","h":[],"bl":null,"k":1}',
  ])('%s is no request', (json) => expect(refusal(() => decodeCallHead(text(json)))).toBe('malformed'));

  test('with more headers than anybody needs are refused: each takes more memory than it took in the head', () => {
    const withHeaders = (count: number) =>
      encodeRequestHead({
        method: 'GET',
        path: '/',
        headers: Array.from({ length: count }, () => ['', '']),
        bodyBytes: 0,
      });
    expect(decodeCallHead(withHeaders(128)).kind).toBe('request');
    expect(refusal(() => decodeCallHead(withHeaders(129)))).toBe('malformed');
  });

  test.each([
    '{"s":"200","h":[],"bl":null}',
    '{"s":100,"h":[],"bl":null}',
    '{"s":600,"h":[],"bl":null}',
    '{"s":200,"bl":null}',
  ])('%s is no answer', (json) => expect(refusal(() => decodeAnswerHead(text(json)))).toBe('malformed'));

  test.each(['{}', '{"code":1,"message":""}', '{"code":""}'])('%s is no reason', (json) =>
    expect(refusal(() => decodeAbortReason(text(json)))).toBe('malformed'),
  );
});

describe('base64url', () => {
  test('is that of RFC 4648', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 70 }), (bytes) => {
        expect(formatBase64url(bytes)).toBe(Buffer.from(bytes).toString('base64url'));
        expect(findBase64url(formatBase64url(bytes))).toEqual(bytes);
      }),
      runs(200, 5000),
    );
  });
  test('has one text for each value', () => {
    for (const other of ['A', 'AB', 'AAB', 'AA==', 'A+A', 'A/A', 'AA A', 'ÄÖÜ'])
      expect(findBase64url(other)).toBeUndefined();
  });
});

test('a gateway id is shown in eight groups', () => {
  expect(formatGatewayId(new Uint8Array(16).fill(0xa5))).toBe('a5a5 a5a5 a5a5 a5a5 a5a5 a5a5 a5a5 a5a5');
});

test('a tag is for one UTC day', () => {
  expect(tagDay(Date.parse('2026-11-21T23:59:59.999Z'))).toBe(20_778);
  expect(tagDay(Date.parse('2026-11-22T00:00:00Z'))).toBe(20_779);
});
