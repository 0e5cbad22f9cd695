/** What a stream looks like to whoever only sees its records: sizes that are multiples, and times that are ticks. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { asCallKey } from '../../../channel/keys.ts';
import { MAX_DATA_BYTES } from '../../../channel/record.ts';
import { RecordOpener } from '../../../channel/record-opener.ts';
import { RecordSealer } from '../../../channel/record-sealer.ts';
import { ReplayBuffer } from '../../../gateway/sealed/replay-buffer.ts';
import { putStream } from '../../../gateway/sealed/stream-sealing.ts';
import { node } from '../../channel/watched-crypto.ts';
import { createFakeTime } from '../../core/fake-time.ts';
import { runs } from '../../support/sampling.ts';

const TICK_MS = 40;
/** Length of the ciphertext and flags before it, the tag behind it. */
const AROUND = 5 + 16;

interface Token {
  readonly afterMs: number;
  readonly bytes: number;
}

interface SeenRecord {
  readonly bytes: number;
  /** What is in it. */
  readonly dataBytes: number;
  readonly atMs: number;
}

interface Seen {
  readonly records: readonly SeenRecord[];
  readonly text: Buffer;
}

/** Plays a stream to a reader that is always there, and notes what goes over the wire when. */
async function play(tokens: readonly Token[], headers: readonly (readonly [string, string])[]): Promise<Seen> {
  const time = createFakeTime();
  const key = node.randomBytes(32);
  const sealer = new RecordSealer(node, asCallKey(new Uint8Array(key)));
  const opener = new RecordOpener(node, asCallKey(key));
  const memory = { count: () => undefined, isScarce: () => false };
  const log = new ReplayBuffer(
    { header: new Uint8Array(22), records: sealer },
    { ...time, memory, onUnread: () => undefined },
  );
  const head = { status: 200, headers, bodyBytes: null };
  async function* body(): AsyncGenerator<Uint8Array> {
    for (const { afterMs, bytes } of tokens) {
      await new Promise<void>((resolve) => time.setTimer(afterMs, resolve));
      yield Buffer.alloc(bytes, 'x');
    }
  }
  const records: SeenRecord[] = [];
  const data: Uint8Array[] = [];
  const read = async (): Promise<void> => {
    for await (const piece of log.read(0, new AbortController().signal)!) {
      for (const record of recordsOf(piece)) {
        const said = [...opener.push(record)].flatMap((event) => (event.type === 'data' ? [event.data] : []));
        data.push(...said);
        records.push({ bytes: record.length, dataBytes: said[0]?.length ?? 0, atMs: time.now() });
      }
    }
  };
  const state = { isOver: false };
  const reading = read().then(() => (state.isOver = true));
  void putStream(log, { head, body: body() }, { tickMs: TICK_MS, setTimer: time.setTimer });
  while (!state.isOver) {
    await new Promise((resolve) => setImmediate(resolve));
    time.advance(5);
  }
  await reading;
  opener.end();
  return { records, text: Buffer.concat(data) };
}

function* recordsOf(piece: Uint8Array): Generator<Uint8Array> {
  const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
  for (let at = 0; at < piece.length;) {
    const end = at + 5 + view.getUint32(at);
    yield piece.subarray(at, end);
    at = end;
  }
}

const token = fc.record({
  afterMs: fc.oneof({ weight: 8, arbitrary: fc.nat(60) }, { weight: 1, arbitrary: fc.nat(20_000) }),
  bytes: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 1, max: 400 }) },
    { weight: 1, arbitrary: fc.nat(150_000) },
  ),
});

test('streams of any tokens are multiples of 256, a tick apart, behind a head of a power of two', async () => {
  const headers = fc.array(fc.tuple(fc.constant('x-some'), fc.string({ unit: 'grapheme-ascii', maxLength: 600 })), {
    maxLength: 3,
  });
  await fc.assert(
    fc.asyncProperty(fc.array(token, { maxLength: 12 }), headers, async (tokens, some) => {
      const { records, text } = await play(tokens, some);
      expect(text.length).toBe(tokens.reduce((sum, { bytes }) => sum + bytes, 0));
      const [head, ...rest] = records;
      expect(Math.log2(head!.bytes - AROUND) % 1).toBe(0);
      expect(head!.bytes - AROUND).toBeGreaterThanOrEqual(256);
      for (const [at, { bytes, dataBytes, atMs }] of rest.entries()) {
        expect(bytes - AROUND).toBe(Math.ceil((4 + dataBytes) / 256) * 256);
        // What is too long for one record goes out in several at once, and all but the last of them are full.
        const before = rest[at - 1];
        const isMore = before?.atMs === atMs && before.bytes - AROUND > MAX_DATA_BYTES;
        if (!isMore && before !== undefined) expect(atMs - before.atMs).toBeGreaterThanOrEqual(TICK_MS);
        expect(atMs - (before ?? head!).atMs).toBeLessThanOrEqual(15_000 + TICK_MS);
      }
    }),
    runs(1000),
  );
});
