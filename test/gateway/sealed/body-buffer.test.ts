/** A request's body in memory: what is counted is what is held, however its records were cut and padded. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { concatBytes } from '../../../channel/bytes.ts';
import { BodyBuffer } from '../../../gateway/sealed/body-buffer.ts';
import { runs } from '../../support/sampling.ts';

test('gives back what came, and holds no more than twice as much', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 5000 }), { maxLength: 40 }), (pieces) => {
      let reserved = 0;
      const body = new BodyBuffer((bytes) => ((reserved += bytes), true));
      for (const piece of pieces) expect(body.append(piece)).toBe(true);
      const all = concatBytes(...pieces);
      expect(body.heldBytes).toBe(reserved);
      expect(reserved).toBeGreaterThanOrEqual(all.length);
      expect(reserved).toBeLessThanOrEqual(Math.max(1024, 2 * all.length));
      expect(concatBytes(...body.pieces())).toEqual(all);
      expect(concatBytes(...body.pieces())).toEqual(all);
      expect(body.clear()).toBe(reserved);
      expect([body.heldBytes, body.clear(), concatBytes(...body.pieces()).length]).toEqual([0, 0, 0]);
    }),
    runs(2000),
  );
});

test('keeps none of the memory that the data came in', () => {
  const body = new BodyBuffer(() => true);
  const record = new Uint8Array(65_536).fill(7);
  for (let count = 0; count < 100; count++) body.append(record.subarray(4, 5));
  record.fill(0);
  expect(body.heldBytes).toBe(1024);
  expect(concatBytes(...body.pieces())).toEqual(new Uint8Array(100).fill(7));
  expect(concatBytes(...body.pieces()).buffer.byteLength).toBe(100);
});

test('keeps a large record where it lies, counts all that is kept with it, and loses no order', () => {
  let reserved = 0;
  const body = new BodyBuffer((bytes) => ((reserved += bytes), true));
  const records = [60_000, 65_532, 40_000].map((length, at) => new Uint8Array(length + 4).fill(at).subarray(4));
  const spacious = new Uint8Array(65_536).fill(9).subarray(0, 40_000);
  const [first, second, third] = records;
  if (first === undefined || second === undefined || third === undefined) throw new Error('three were made');
  for (const data of [first, Uint8Array.of(1, 2), second, spacious, third]) expect(body.append(data)).toBe(true);
  const pieces = body.pieces();
  expect(Buffer.compare(concatBytes(...pieces), concatBytes(first, Uint8Array.of(1, 2), second, spacious, third))).toBe(
    0,
  );
  const memories = new Set(pieces.map(({ buffer }) => buffer));
  expect([...records, spacious].map(({ buffer }) => memories.has(buffer))).toEqual([true, true, true, false]);
  expect(reserved).toBe([...memories].reduce((sum, { byteLength }) => sum + byteLength, 0));
  expect(body.clear()).toBe(reserved);
});

test('hands it out in pieces, however long it is: one copy of 32 MiB would hold everybody up', () => {
  const body = new BodyBuffer(() => true);
  const record = new Uint8Array(65_000).fill(7);
  for (let count = 0; count < 500; count++) body.append(record);
  const lengths = body.pieces().map(({ length }) => length);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(65_536);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBe(500 * 65_000);
});

test('takes nothing more where there is no memory for it', () => {
  let left = 3000;
  const body = new BodyBuffer((bytes) => bytes <= left && ((left -= bytes), true));
  expect(body.append(new Uint8Array(2000))).toBe(true);
  expect(body.append(new Uint8Array(2000))).toBe(false);
  expect(left + body.clear()).toBe(3000);
});
