/** The reader gives what JSON.parse gives, wherever the bytes are cut, and stops at its limits. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { JSON_LIMITS } from '../../../core/json/json-limits.ts';
import { JsonReader, parseBoundedJson } from '../../../core/json/json-reader.ts';
import { runs } from '../../support/sampling.ts';

/** Reads the bytes in pieces that end at these places. */
function readInPieces(bytes: Uint8Array, cuts: readonly number[]): unknown {
  const reader = new JsonReader();
  let from = 0;
  for (const cut of cuts.map((at) => at % (bytes.length + 1)).toSorted((one, other) => one - other)) {
    reader.push(bytes.subarray(from, cut));
    from = cut;
  }
  reader.push(bytes.subarray(from));
  return reader.end();
}

/** What it is, or that it is none. */
function outcome(parse: () => unknown): unknown {
  try {
    return { value: parse() };
  } catch {
    return 'refused';
  }
}

const cuts = fc.array(fc.nat(), { maxLength: 12 });

/** As other writers of JSON may put it: white space, escapes where none are needed, a key twice. */
const text = fc.oneof(
  fc.json({ stringUnit: 'binary' }),
  fc.json({ stringUnit: 'grapheme' }).map((json) => json.replaceAll(/[{[,:]/g, '$&\r\n\t ')),
  fc
    .string({ unit: 'binary' })
    .map(
      (value) =>
        `"${Array.from({ length: value.length }, (_, at) => `\\u${value.charCodeAt(at).toString(16).padStart(4, '0')}`).join('')}"`,
    ),
  fc.double().map(String),
  fc
    .array(
      fc.constantFrom(
        ...'{}[]:,"\\'.split(''),
        '1',
        '-',
        '.5',
        'e3',
        'E+',
        '0',
        'true',
        'null',
        '"a"',
        'é',
        '\\u',
        '\\ud83d',
        ' ',
      ),
    )
    .map((parts) => parts.join('')),
);

test('what JSON.parse accepts has the same value here, and what it refuses is refused, however it is cut', () => {
  fc.assert(
    fc.property(text, cuts, (json, at) => {
      const bytes = Buffer.from(json);
      expect(outcome(() => readInPieces(bytes, at))).toEqual(outcome(() => JSON.parse(bytes.toString())));
    }),
    runs(20_000),
  );
});

test('one byte at a time gives the same value as all of them at once', () => {
  const value = { a: [1, -0.5, 1e21, true, null], 'é😀': 'a"\\/\b\f\n\r\t\u2028ü𝕏', '': { '': [[], {}] } };
  const bytes = Buffer.from(JSON.stringify(value));
  expect(
    readInPieces(
      bytes,
      Array.from({ length: bytes.length }, (_, at) => at),
    ),
  ).toEqual(value);
});

describe('what is unusual and valid means what it means to JSON.parse', () => {
  for (const json of [
    '{"a":1,"b":2,"a":3}',
    '{"__proto__":{"x":1},"constructor":2}',
    '"\\ud83d\\ude00 \\ud800"',
    ' -0 ',
    '1E400',
    'null',
    '"\u007f\ufeff"',
    '{"":""}',
  ]) {
    test(json, () => {
      const value = parseBoundedJson(json);
      expect(JSON.stringify(value)).toBe(JSON.stringify(JSON.parse(json)));
      expect(value).toEqual(JSON.parse(json));
    });
  }
  test('a byte order mark before the text, in one piece or three', () => {
    const bytes = Buffer.from('\ufeff{"a":1}');
    for (const at of [[], [1], [2], [1, 2], [3]]) expect(readInPieces(bytes, at)).toEqual({ a: 1 });
  });
});

describe('what is no JSON is refused, without a word of it in the message', () => {
  for (const json of [
    '',
    ' ',
    '{',
    '[1,]',
    '{"a":1,}',
    '{"a"}',
    '{a:1}',
    '[1 2]',
    '01',
    '1.',
    '.5',
    '+1',
    'NaN',
    '"a',
    '"\n"',
    '"\\x"',
    '"\\u12g4"',
    '[}',
    '{]',
    '1 2',
    '{"secret":tru}',
  ]) {
    test(JSON.stringify(json), () => {
      expect(() => parseBoundedJson(json)).toThrow(/^is not valid JSON \((?:at position \d+|it ends too soon)\)$/);
    });
  }
  for (const bytes of [
    [0x22, 0xff, 0x22],
    [0x22, 0xc3, 0x22],
    [0x22, 0xed, 0xa0, 0x80, 0x22],
    [0x22, 0x80, 0x22],
    [0x22, 0xf0, 0x9f, 0x98, 0x22],
  ]) {
    test(`bytes ${bytes.join(' ')}`, () => {
      for (const at of [[], [1], [2], [1, 2, 3]]) {
        expect(() => readInPieces(Uint8Array.from(bytes), at)).toThrow('is not valid UTF-8');
      }
    });
  }
});

describe('each limit holds exactly', () => {
  const { maxDepth, maxItems, maxKeyBytes, maxMembers, maxNodes, maxObjects } = JSON_LIMITS;
  const members = (count: number) => `{${Array.from({ length: count }, (_, at) => `"${at}":0`).join()}}`;
  const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const cases: readonly (readonly [string, (count: number) => string, number, RegExp])[] = [
    ['depth', nested, maxDepth, /^is nested more than 100 levels deep$/],
    ['numbers of an array', (count) => `[${'0,'.repeat(count - 1)}0]`, maxItems, /more than 131072 numbers$/],
    ['other items of an array', (count) => `[0,${'"",'.repeat(count - 1)}""]`, maxObjects, /more than 10000 items$/],
    ['members of an object', members, maxMembers, /more than 10000 members$/],
    ['bytes of a key', (count) => `{"${'k'.repeat(count)}":0}`, maxKeyBytes, /a key of more than 4096 bytes$/],
    ['digits of a number', (count) => '1'.repeat(count), 1024, /a number of more than 1024 digits$/],
    [
      'values and keys',
      // An array of arrays of a thousand each, and the rest as numbers.
      (count) =>
        `[${`[${'0,'.repeat(998)}0],`.repeat(Math.floor(count / 1000) - 1)}${'0,'.repeat(998 + (count % 1000))}0]`,
      maxNodes,
      /more than 250000 values and keys$/,
    ],
  ];
  for (const [name, make, limit, message] of cases) {
    test(`${name}: ${limit}`, () => {
      expect(() => parseBoundedJson(make(limit))).not.toThrow();
      expect(() => parseBoundedJson(make(limit + 1))).toThrow(message);
    });
  }
  test('a key that is given again and again counts each time', () => {
    expect(() => parseBoundedJson(`{${'"a":0,'.repeat(maxMembers)}"a":0}`)).toThrow(/more than 10000 members$/);
  });
});

test('a text that goes on for ever with white space, or in one string, is held in no other form than its own', () => {
  const reader = new JsonReader();
  reader.push(Buffer.from('"'));
  for (let piece = 0; piece < 512; piece += 1) reader.push(Buffer.alloc(65_536, 'a'));
  reader.push(Buffer.from('"'));
  expect(reader.end()).toHaveLength(512 * 65_536);
});
