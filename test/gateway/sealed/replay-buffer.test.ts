/** An answer on its way: sealed when it is taken, kept for one who comes back, and ended in the middle without a gap. */
import { expect, test } from 'vitest';
import { RecordOpener, type RecordEvent } from '../../../channel/record-opener.ts';
import { RecordSealer } from '../../../channel/record-sealer.ts';
import { asCallKey } from '../../../channel/keys.ts';
import { ReplayBuffer, KEPT_BYTES, KEPT_MS, type AnswerMemory } from '../../../gateway/sealed/replay-buffer.ts';
import { PAD_MS, putBody, putStream, putWhole } from '../../../gateway/sealed/stream-sealing.ts';
import { node } from '../../channel/watched-crypto.ts';
import { createFakeTime } from '../../core/fake-time.ts';

const never = new AbortController().signal;
const HEAD = { status: 200, headers: [], bodyBytes: null };
const text = (content: string) => new TextEncoder().encode(content);

const plenty: AnswerMemory = { count: () => undefined, isScarce: () => false };

function newLog(memory = plenty) {
  const time = createFakeTime();
  const key = node.randomBytes(32);
  const sealer = new RecordSealer(node, asCallKey(new Uint8Array(key)));
  let unread = 0;
  const log = new ReplayBuffer(
    { header: new Uint8Array(22), records: sealer },
    { ...time, memory, onUnread: () => (unread += 1) },
  );
  const opener = () => new RecordOpener(node, asCallKey(new Uint8Array(key)));
  return { log, time, sealer, opener, unread: () => unread };
}

/** What a reader has got so far, without waiting for more. */
async function take(pieces: AsyncGenerator<Uint8Array>, opener: RecordOpener): Promise<RecordEvent[]> {
  const { value, done } = await pieces.next();
  return done === true ? [] : [...opener.push(value)];
}

const said = (events: readonly RecordEvent[]) =>
  events.map((event) => (event.type === 'data' ? Buffer.from(event.data).toString() : event.type));

test('what was not taken is not sealed, so the reason for an end is the very next record', async () => {
  const { log, sealer, opener } = newLog();
  log.put({ kind: 'head', data: text('{}') });
  log.put({ kind: 'data', data: text('one') });
  const pieces = log.read(0, never)!;
  const reader = opener();
  expect(said(await take(pieces, reader))).toEqual(['head', 'one']);
  for (let count = 0; count < 100; count++) log.put({ kind: 'data', data: text('never to be seen') });
  log.end(sealer.sealAbort(text('revoked')));
  expect(said(await take(pieces, reader))).toEqual(['abort']);
  expect(await take(pieces, reader)).toEqual([]);
  log.put({ kind: 'data', data: text('too late') });
  expect((await pieces.next()).done).toBe(true);
});

test('a reader that comes back gets every record once more, to the byte, and those to come', async () => {
  const { log, opener, unread } = newLog();
  log.put({ kind: 'head', data: text('{}') });
  log.put({ kind: 'data', data: text('one') });
  const first = log.read(0, never)!;
  const got = await first.next();
  await first.return(undefined);
  expect(unread()).toBe(1);
  const second = log.read(0, never)!;
  expect((await second.next()).value).toEqual(got.value);
  log.put({ kind: 'data', data: text('two'), last: true });
  const reader = opener();
  const third = log.read(1, never)!;
  expect((await second.next()).done).toBe(true);
  void reader.push(got.value as Uint8Array).next();
  const fresh = opener();
  const rest = await third.next();
  const all = Buffer.concat([(got.value as Uint8Array).subarray(0, 5 + 256 + 16), rest.value as Uint8Array]);
  expect(said([...fresh.push(all)])).toEqual(['head', 'one', 'two', 'end']);
  expect((await third.next()).done).toBe(true);
  expect(log.isOver).toBe(true);
});

test('what is held is counted, until it is let go of', async () => {
  let held = 0;
  const { log } = newLog({ ...plenty, count: (bytes) => (held += bytes) });
  log.put({ kind: 'head', data: text('{}') });
  log.put({ kind: 'data', data: new Uint8Array(1000) });
  expect(held).toBeGreaterThan(1000);
  const pieces = log.read(0, never)!;
  const { value } = await pieces.next();
  // The bytes that went out are those that are kept, padding included.
  expect(held).toBeGreaterThanOrEqual((value as Uint8Array).length);
  for (let record = 0; record < 1000; record++) log.put({ kind: 'data', data: text('x') });
  expect(held).toBeGreaterThan(1000 * 256);
  log.drop();
  expect(held).toBe(0);
  expect((await pieces.next()).done).toBe(true);
});

test('where memory is scarce nothing is kept that was taken, and little waits', async () => {
  let isScarce = false;
  const { log } = newLog({ ...plenty, isScarce: () => isScarce });
  log.put({ kind: 'head', data: text('{}') });
  const pieces = log.read(0, never)!;
  log.put({ kind: 'data', data: new Uint8Array(20_000) });
  await pieces.next();
  isScarce = true;
  log.trim();
  expect(log.read(0, never)).toBeUndefined();
  log.put({ kind: 'data', data: new Uint8Array(65_000) });
  await log.room();
  log.put({ kind: 'data', data: new Uint8Array(1000) });
  let hasRoom = false;
  void log.room().then(() => (hasRoom = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasRoom).toBe(false);
  await pieces.next();
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasRoom).toBe(true);
});

test('more than a mebibyte, or two minutes, is not kept', async () => {
  const { log } = newLog();
  log.put({ kind: 'head', data: text('{}') });
  const pieces = log.read(0, never)!;
  for (let bytes = 0; bytes < KEPT_BYTES + 200_000; bytes += 60_000) {
    log.put({ kind: 'data', data: new Uint8Array(60_000) });
    await pieces.next();
  }
  await pieces.return(undefined);
  expect(log.read(0, never)).toBeUndefined();
  expect(log.read(10_000, never)).toBeUndefined();
  const later = newLog();
  later.log.put({ kind: 'head', data: text('{}') });
  later.log.put({ kind: 'data', data: text('one') });
  const taken = later.log.read(0, never)!;
  await taken.next();
  await taken.return(undefined);
  later.time.advance(KEPT_MS + 1);
  expect(later.log.read(0, never)).toBeUndefined();
});

test('whoever makes an answer waits for its reader, and without one for as long as there is room', async () => {
  const { log } = newLog();
  log.put({ kind: 'head', data: text('{}') });
  const state = { hasRoom: false };
  for (let count = 0; count < 20; count++) log.put({ kind: 'data', data: new Uint8Array(65_000) });
  const room = log.room().then(() => (state.hasRoom = true));
  await Promise.resolve();
  expect(state.hasRoom).toBe(false);
  const pieces = log.read(0, never)!;
  for (let count = 0; count < 20 && !state.hasRoom; count++) await pieces.next();
  await room;
  expect(state.hasRoom).toBe(true);
});

test('a stream is collected for a tick, and its last record is one like the others', async () => {
  const { log, time, opener } = newLog();
  let send: ((piece: Uint8Array | undefined) => void) | undefined;
  async function* body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const piece = await new Promise<Uint8Array | undefined>((resolve) => (send = resolve));
      if (piece === undefined) return;
      yield piece;
    }
  }
  const put = putStream(log, { head: HEAD, body: body() }, { tickMs: 40, setTimer: time.setTimer });
  const pieces = log.read(0, never)!;
  const reader = opener();
  expect(said(await take(pieces, reader))).toEqual(['head']);
  for (const piece of ['a', 'b', 'c']) {
    await settle();
    send!(text(piece));
  }
  await settle();
  time.advance(39);
  const next = take(pieces, reader);
  time.advance(1);
  expect(said(await next)).toEqual(['abc']);
  send!(undefined);
  await settle();
  const last = take(pieces, reader);
  time.advance(40);
  expect(said(await last)).toEqual(['end']);
  await put;
});

test('silence is filled every 15 s, for a reader that is there', async () => {
  const { log, time, opener } = newLog();
  async function* body(): AsyncGenerator<Uint8Array> {
    await new Promise(() => {});
    yield new Uint8Array();
  }
  void putStream(log, { head: HEAD, body: body() }, { tickMs: 40, setTimer: time.setTimer });
  const pieces = log.read(0, never)!;
  const reader = opener();
  await take(pieces, reader);
  const next = pieces.next();
  time.advance(PAD_MS);
  const pad = (await next).value as Uint8Array;
  expect(pad.length).toBe(5 + 256 + 16);
  expect([...reader.push(pad)]).toEqual([]);
});

test.each([0, 1, 65_531, 65_532, 65_533, 200_000])('a body of %i bytes comes whole, read or known', async (bytes) => {
  const body = new Uint8Array(bytes).map((_, at) => at);
  async function* cut(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < body.length; at += 10_007) yield body.subarray(at, at + 10_007);
  }
  for (const put of [
    (log: ReplayBuffer) => putWhole(log, { status: 200, headers: [] }, body),
    (log: ReplayBuffer) => void putBody(log, { ...HEAD, bodyBytes: bytes }, cut()),
    (log: ReplayBuffer) => void putBody(log, HEAD, cut()),
  ]) {
    const { log, opener } = newLog();
    put(log);
    const reader = opener();
    const data: Uint8Array[] = [];
    const types: string[] = [];
    for await (const piece of log.read(0, never)!) {
      for (const event of reader.push(piece)) {
        types.push(event.type);
        if (event.type === 'data') data.push(event.data);
      }
    }
    reader.end();
    expect(Buffer.concat(data).equals(body)).toBe(true);
    expect([types[0], types.at(-1)]).toEqual(['head', 'end']);
  }
});

/** Lets everything run that can. */
const settle = () => new Promise((resolve) => setImmediate(resolve));

test('a source that is faster than its ticks is read no further than a tick can take', async () => {
  const { log, time } = newLog();
  let asked = 0;
  async function* body(): AsyncGenerator<Uint8Array> {
    // Finite, so that what reads all of it ends here too.
    for (; asked < 10_000; asked++) yield new Uint8Array(10_000);
  }
  void putStream(log, { head: HEAD, body: body() }, { tickMs: 40, setTimer: time.setTimer });
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked * 10_000).toBeLessThan(300_000);
  time.advance(40);
  await new Promise((resolve) => setImmediate(resolve));
  expect(asked * 10_000).toBeLessThan(1_500_000);
});
