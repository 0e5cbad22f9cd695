import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { viewOf } from '../../channel/bytes.ts';
import type { Crypto } from '../../channel/crypto.ts';
import type { CallKey } from '../../channel/keys.ts';
import { asCallKey } from '../../channel/keys.ts';
import { nonceOf } from '../../channel/nonce.ts';
import { FLAG, MAX_DATA_BYTES, paddedBytes } from '../../channel/record.ts';
import type { RecordEvent } from '../../channel/record-opener.ts';
import { RecordOpener } from '../../channel/record-opener.ts';
import { RecordSealer } from '../../channel/record-sealer.ts';
import { bytes, refusal, text } from './paired.ts';
import { runs, times } from './sampling.ts';
import { node, PROVIDERS } from './watched-crypto.ts';

interface Stream {
  readonly sealer: RecordSealer;
  readonly key: CallKey;
  /** A fresh one each time: an opener is for one stream. */
  readonly opener: () => RecordOpener;
}

/** Sealer and opener overwrite their key at the end, so each gets a copy. */
function newStream(crypto: Crypto = node): Stream {
  const key = asCallKey(crypto.randomBytes(32));
  const copy = (): CallKey => asCallKey(new Uint8Array(key));
  return { key, sealer: new RecordSealer(crypto, copy()), opener: () => new RecordOpener(crypto, copy()) };
}

/** A head, output as it came, a sign of life, and the end. */
function sealStream(sealer: RecordSealer): Uint8Array[] {
  return [
    sealer.sealHead(text('head')),
    sealer.sealData(text('one'), { padding: 'stream' }),
    sealer.sealPad(),
    sealer.sealData(text('two'), { padding: 'stream' }),
    sealer.sealData(text('three'), { padding: 'stream', last: true }),
  ];
}

const STREAM_EVENTS = ['head:head', 'data:one', 'data:two', 'data:three', 'end:'];

function describeEvent(event: RecordEvent): string {
  return `${event.type}:${'data' in event ? Buffer.from(event.data).toString() : ''}`;
}

/** What an opener makes of these pieces and of the end of the transport after them. */
function read(opener: RecordOpener, pieces: readonly Uint8Array[]): { events: string[]; ending: string } {
  const events: string[] = [];
  const ending = refusal(() => {
    for (const piece of pieces) for (const event of opener.push(piece)) events.push(describeEvent(event));
    opener.end();
  });
  return { events, ending };
}

describe.each(PROVIDERS)('on %s', (_name, crypto) => {
  test('what was sealed opens, however the bytes are cut', () => {
    const { sealer, opener } = newStream(crypto);
    const wire = bytes(...sealStream(sealer));
    const cuts = fc.array(fc.integer({ min: 0, max: wire.length }), { maxLength: 20 });
    fc.assert(
      fc.property(cuts, (at) => {
        const ends = [...at, wire.length].toSorted((a, b) => a - b);
        const pieces = ends.map((end, index) => wire.subarray(ends[index - 1] ?? 0, end));
        expect(read(opener(), pieces)).toEqual({ events: STREAM_EVENTS, ending: 'accepted' });
      }),
      runs(50, 1000),
    );
    const single = Array.from(wire, (byte) => Uint8Array.of(byte));
    expect(read(opener(), single)).toEqual({ events: STREAM_EVENTS, ending: 'accepted' });
  });

  test('a body of any size comes back, in records of which only the last is padded to less', () => {
    for (const size of [
      0,
      1,
      251,
      252,
      253,
      MAX_DATA_BYTES - 1,
      MAX_DATA_BYTES,
      MAX_DATA_BYTES + 1,
      3 * MAX_DATA_BYTES,
    ]) {
      const { sealer, opener } = newStream(crypto);
      const body = crypto.randomBytes(size);
      const events = [...opener().push(bytes(sealer.sealHead(text('h')), ...sealer.sealBody(body)))];
      const data = events.flatMap((event) => (event.type === 'data' ? [event.data] : []));
      expect(Buffer.compare(bytes(...data), body)).toBe(0);
      expect(data).toHaveLength(Math.ceil(size / MAX_DATA_BYTES));
      expect(events.at(-1)).toEqual({ type: 'end' });
      expect(sealer.isDone).toBe(true);
    }
  });

  test('a whole stream in one piece of memory is the records that it would be made of', () => {
    for (const size of [0, 1, 252, 253, MAX_DATA_BYTES, MAX_DATA_BYTES + 1, 2 * MAX_DATA_BYTES + 300]) {
      const { sealer, opener } = newStream(crypto);
      const [before, head, body] = [text('before'), text('head'), crypto.randomBytes(size)];
      const whole = sealer.sealWhole({ before, head, body });
      const { sealer: other } = newStream(crypto);
      const sealedHead = other.sealHead(head, { last: size === 0 });
      const records = bytes(before, sealedHead, ...(size === 0 ? [] : other.sealBody(body)));
      expect([whole.length, whole.subarray(0, 6 + 5)]).toEqual([records.length, records.subarray(0, 6 + 5)]);
      const events = [...opener().push(whole.subarray(before.length))];
      expect([...events.slice(0, 1), ...events.slice(-1)].map(describeEvent)).toEqual(['head:head', 'end:']);
      const data = events.flatMap((event) => (event.type === 'data' ? [event.data] : []));
      expect(Buffer.compare(bytes(...data), body)).toBe(0);
      expect(whole.buffer.byteLength).toBe(whole.length);
      expect(sealer.isDone).toBe(true);
    }
  });

  test('what was opened stays as it is while later records come, cut anywhere', () => {
    const { sealer, opener } = newStream(crypto);
    const sizes = [70, 60_000, 1, 5000, MAX_DATA_BYTES, 3, 400, 60_000];
    const parts = sizes.map((size) => crypto.randomBytes(size));
    const wire = bytes(
      sealer.sealHead(text('h')),
      ...parts.map((data, at) => sealer.sealData(data, { last: at === parts.length - 1 })),
    );
    for (const step of [100, 4096, 65_536]) {
      const reader = opener();
      const events: RecordEvent[] = [];
      for (let at = 0; at < wire.length; at += step) events.push(...reader.push(wire.slice(at, at + step)));
      const data = events.flatMap((event) => (event.type === 'data' ? [event.data] : []));
      expect(data.map((one, at) => Buffer.compare(one, parts[at] ?? new Uint8Array()))).toEqual(sizes.map(() => 0));
      expect([events.length, reader.heldBytes]).toEqual([sizes.length + 2, 0]);
    }
  });
});

describe('padding', () => {
  test('a body is padded to the next power of two', () => {
    const lengths = [0, 252, 253, 508, 509, 32_764, 32_765, 65_532].map((size) => paddedBytes(size, 'body'));
    expect(lengths).toEqual([256, 256, 512, 512, 1024, 32_768, 65_536, 65_536]);
  });

  test('a stream is padded to the next multiple of 256', () => {
    const lengths = [0, 252, 253, 508, 509, 1000, 65_532].map((size) => paddedBytes(size, 'stream'));
    expect(lengths).toEqual([256, 256, 512, 512, 768, 1024, 65_536]);
  });

  test('what does not fit is our own mistake', () => {
    expect(() => paddedBytes(65_533, 'stream')).toThrow(RangeError);
    expect(() => newStream().sealer.sealHead(new Uint8Array(65_533))).toThrow(RangeError);
  });

  test('on the wire a record of a stream is a multiple of 256 and 21 bytes more', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 3000 }), (data) => {
        const { sealer } = newStream();
        sealer.sealHead(text('h'));
        expect((sealer.sealData(data, { padding: 'stream' }).length - 21) % 256).toBe(0);
      }),
      runs(50, 1000),
    );
  });
});

describe('the end of a stream', () => {
  test('a stream cut at any byte is truncated, and what came before is what was sent', () => {
    const { sealer, opener } = newStream();
    const wire = bytes(...sealStream(sealer));
    for (let length = 0; length < wire.length; length++) {
      const { events, ending } = read(opener(), [wire.subarray(0, length)]);
      expect(ending).toBe('truncated');
      expect(STREAM_EVENTS.slice(0, events.length)).toEqual(events);
      expect(events).not.toContain('end:');
    }
  });

  test('bytes after the last record kill the stream', () => {
    const { sealer, opener } = newStream();
    const wire = bytes(...sealStream(sealer));
    expect(read(opener(), [wire, Uint8Array.of(0)]).ending).toBe('record_refused');
    expect(read(opener(), [bytes(wire, Uint8Array.of(0))]).ending).toBe('record_refused');
  });

  test('a sender who gives up says so, at any time', () => {
    const early = newStream();
    expect(read(early.opener(), [early.sealer.sealAbort(text('why'))])).toEqual({
      events: ['abort:why'],
      ending: 'accepted',
    });
    const late = newStream();
    const wire = bytes(
      late.sealer.sealHead(text('h')),
      late.sealer.sealData(text('d')),
      late.sealer.sealAbort(text('why')),
    );
    expect(read(late.opener(), [wire])).toEqual({ events: ['head:h', 'data:d', 'abort:why'], ending: 'accepted' });
  });

  test('whoever stops asking for events has given up', () => {
    const { sealer, opener } = newStream();
    const wire = bytes(...sealStream(sealer));
    const reading = opener();
    for (const event of reading.push(wire)) if (event.type === 'data') break;
    expect(refusal(() => reading.end())).toBe('record_refused');
    const finished = opener();
    for (const event of finished.push(wire)) if (event.type === 'end') break;
    expect(refusal(() => finished.end())).toBe('accepted');
    const erased = opener();
    erased.erase();
    expect(read(erased, [wire])).toEqual({ events: [], ending: 'record_refused' });
  });
});

describe('misuse is a TypeError:', () => {
  const { sealer } = newStream();
  test('data before the head', () => expect(() => sealer.sealData(text('d'))).toThrow(TypeError));
  test('a sign of life before the head', () => expect(() => sealer.sealPad()).toThrow(TypeError));
  test('a second head, and anything after the end', () => {
    sealer.sealHead(text('h'));
    expect(() => sealer.sealHead(text('h'))).toThrow(TypeError);
    sealer.sealData(text('d'), { last: true });
    expect(() => sealer.sealData(text('d'))).toThrow(TypeError);
    expect(() => sealer.sealAbort(text('a'))).toThrow(TypeError);
  });
  test('a second push before the events of the first are taken', () => {
    const stream = newStream();
    const opener = stream.opener();
    const events = opener.push(bytes(...sealStream(stream.sealer)));
    events.next();
    expect(() => [...opener.push(text('more'))]).toThrow(TypeError);
  });
  test('a counter that is no number of a message', () => {
    expect(() => nonceOf(-1)).toThrow(RangeError);
    expect(() => nonceOf(2 ** 53)).toThrow(RangeError);
    expect([...nonceOf(2 ** 32 + 1)]).toEqual([0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]);
  });
});

describe('a record that is not where it was sent is refused:', () => {
  const { sealer, opener } = newStream();
  const records = sealStream(sealer);
  const order = (...indexes: readonly number[]): Uint8Array[] => indexes.map((index) => records[index]!);
  const outcome = (pieces: readonly Uint8Array[]): string => read(opener(), pieces).ending;

  test('dropped', () => {
    expect(outcome(order(1, 2, 3, 4))).toBe('record_refused');
    expect(outcome(order(0, 2, 3, 4))).toBe('record_refused');
    expect(outcome(order(0, 1, 3, 4))).toBe('record_refused');
    expect(outcome(order(0, 1, 2, 4))).toBe('record_refused');
    expect(outcome(order(0, 1, 2, 3))).toBe('truncated');
  });
  test('swapped', () => {
    for (let i = 0; i < 4; i++) {
      const swapped = [0, 1, 2, 3, 4].toSpliced(i, 2, i + 1, i);
      expect(outcome(order(...swapped))).toBe('record_refused');
    }
  });
  test('duplicated', () => {
    for (let i = 0; i < 5; i++) expect(outcome(order(...[0, 1, 2, 3, 4].toSpliced(i, 0, i)))).toBe('record_refused');
  });
  test('from another stream', () => {
    const others = sealStream(newStream().sealer);
    for (let i = 0; i < 5; i++) expect(outcome(records.toSpliced(i, 1, others[i]!))).toBe('record_refused');
  });
});

test('every bit of a record matters', () => {
  const { sealer, opener } = newStream();
  const wire = bytes(...sealStream(sealer));
  const accepted: number[] = [];
  for (let bit = 0; bit < wire.length * 8; bit += times(7, 1)) {
    const copy = new Uint8Array(wire);
    copy[bit >> 3]! ^= 1 << (bit & 7);
    // A longer length claims more than will come, so the stream ends too early; all else does not authenticate.
    if (!['record_refused', 'truncated'].includes(read(opener(), [copy]).ending)) accepted.push(bit);
  }
  expect(accepted).toEqual([]);
});

describe('a peer that holds the key and breaks the rules is refused:', () => {
  /** A record as no RecordSealer would make it, but authentic. */
  function forge({ key, index, flags, plaintext }: Forgery): Uint8Array {
    const record = new Uint8Array(5 + plaintext.length + 16);
    viewOf(record).setUint32(0, plaintext.length + 16);
    record[4] = flags;
    record.set(plaintext, 5);
    node.aead.seal(key, nonceOf(index), record.subarray(0, 5), record.subarray(5));
    return record;
  }

  interface Forgery {
    readonly key: CallKey;
    readonly index: number;
    readonly flags: number;
    readonly plaintext: Uint8Array;
  }

  function plaintextOf(data: Uint8Array, claimed = data.length, padding = 0): Uint8Array {
    const plaintext = new Uint8Array(256).fill(padding, 4 + data.length);
    viewOf(plaintext).setUint32(0, claimed);
    plaintext.set(data, 4);
    return plaintext;
  }

  /** Every set of flags but those that the rules allow, on record 0 and on a later one. */
  test('flags', () => {
    const allowed = {
      first: [FLAG.head, FLAG.head | FLAG.fin, FLAG.head | FLAG.fin | FLAG.abort],
      later: [0, 1, 5, 8],
    };
    const seen = { first: [] as number[], later: [] as number[] };
    for (let flags = 0; flags < 256; flags++) {
      const first = newStream();
      const record = forge({ key: first.key, index: 0, flags, plaintext: plaintextOf(new Uint8Array(0)) });
      if (read(first.opener(), [record]).ending !== 'record_refused') seen.first.push(flags);
      const later = newStream();
      const head = later.sealer.sealHead(text('h'));
      const second = forge({ key: later.key, index: 1, flags, plaintext: plaintextOf(new Uint8Array(0)) });
      if (read(later.opener(), [head, second]).ending !== 'record_refused') seen.later.push(flags);
    }
    expect(seen).toEqual(allowed);
  });

  const refuses = (plaintext: Uint8Array, flags = 0): void => {
    const { sealer, opener, key } = newStream();
    const record = forge({ key, index: 1, flags, plaintext });
    expect(read(opener(), [sealer.sealHead(text('h')), record])).toEqual({
      events: ['head:h'],
      ending: 'record_refused',
    });
  };
  test('padding that is not zero', () => refuses(plaintextOf(text('d'), 1, 1)));
  test('a byte of it', () => {
    const plaintext = plaintextOf(text('d'));
    plaintext[255] = 1;
    refuses(plaintext);
  });
  test('a data length beyond the record', () => refuses(plaintextOf(text('d'), 253)));
  test('data in a sign of life', () => refuses(plaintextOf(text('d')), FLAG.pad));
});

test('what a header claims takes no memory before it comes', () => {
  const { sealer, opener: newOpener } = newStream();
  const opener = newOpener();
  const record = sealer.sealHead(new Uint8Array(60_000));
  expect([...opener.push(record.subarray(0, 6))]).toEqual([]);
  expect(opener.heldBytes).toBeLessThanOrEqual(1);
  for (let at = 6; at < record.length - 1; at++) {
    expect([...opener.push(record.subarray(at, at + 1))]).toEqual([]);
    if (opener.heldBytes > 2 * at) throw new Error(`${opener.heldBytes} bytes are held after ${at} came`);
  }
  expect([...opener.push(record.subarray(-1))]).toHaveLength(1);
  expect(opener.heldBytes).toBe(0);
});

test('a header that claims too much or too little is refused before anything is kept for it', () => {
  for (const length of [0, 19, 65_553, 0x7fff_ffff, 0xffff_ffff]) {
    const opener = newStream().opener();
    const header = new Uint8Array(5);
    viewOf(header).setUint32(0, length);
    expect(refusal(() => [...opener.push(header)])).toBe('record_refused');
    expect(opener.heldBytes).toBe(0);
  }
});
