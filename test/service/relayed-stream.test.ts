/** What a relay's stream can send that is no request: each ends the stream, and the channel server hears no more of it. */
import { expect, test } from 'vitest';
import { admitStream } from '../../service/relayed-stream.ts';
import type { TunnelStream } from '../../relay-client/tunnel-stream.ts';
import { RELAY_CODE, RelayError } from '../../relay/wire/codes.ts';
import { OP } from '../../relay/wire/op.ts';
import { createFakeTime } from '../core/fake-time.ts';

/** A channel server that hears all of it, and a stream that a test feeds. */
function start(op: number, fault?: Error) {
  const time = createFakeTime();
  const dead = new AbortController();
  const waiting: ((piece: Uint8Array | undefined) => void)[] = [];
  const resets: number[] = [];
  const heard: { readonly op: string; readonly transport: string; readonly clientKey: string; bytes: number }[] = [];
  async function* pieces(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = new Promise<Uint8Array | undefined>((resolve) => waiting.push(resolve));
      const gone = new Promise<never>((_, reject) => {
        dead.signal.addEventListener('abort', () => reject(dead.signal.reason as Error), { once: true });
      });
      const piece = await Promise.race([next, gone]);
      if (piece === undefined) return;
      yield piece;
    }
  }
  const stream: TunnelStream = {
    op,
    connTag: new Uint8Array(8).fill(0xab),
    bytes: pieces(),
    signal: dead.signal,
    async answer(answers) {
      for await (const _ of answers);
    },
    reset(code) {
      resets.push(code);
      dead.abort(new RelayError(code));
    },
  };
  const over = admitStream(stream, {
    setTimer: time.setTimer,
    channelServer: {
      async *handle(doorOp, { transport, clientKey }, bytes) {
        const entry = { op: doorOp, transport, clientKey, bytes: 0 };
        heard.push(entry);
        if (fault !== undefined) throw fault;
        for await (const piece of bytes) entry.bytes += piece.length;
        yield new Uint8Array(1);
      },
    },
  });
  const send = async (piece: Uint8Array | undefined) => {
    while (waiting.length === 0) await new Promise(setImmediate);
    waiting.shift()!(piece);
    await new Promise(setImmediate);
  };
  return { time, over, send, resets, heard };
}

test.each([
  [OP.session, 'session'],
  [OP.call, 'call'],
  [OP.invite, 'invite'],
])('op %i is %s, of a caller that came through the relay', async (op, name) => {
  const { over, send, heard, resets, time } = start(op);
  await send(new Uint8Array(9));
  await send(undefined);
  await over;
  expect(heard).toEqual([{ op: name, transport: 'relay', clientKey: 'ab'.repeat(8), bytes: 9 }]);
  expect([resets, time.pending()]).toEqual([[], 0]);
});

test.each([OP.discoveryOpen, OP.discoveryProve, OP.probe, 0, 0x02, 0xff])('op %i leads nowhere', async (op) => {
  const { over, heard, resets } = start(op);
  await over;
  expect([heard, resets]).toEqual([[], [RELAY_CODE.notAllowed]]);
});

test.each([
  [OP.session, 8 * 1024],
  [OP.invite, 64 * 1024],
  [OP.call, 32 * 1024 * 1024],
])('op %i: %i bytes are heard, and one more is too many', async (op, limit) => {
  const whole = start(op);
  await whole.send(new Uint8Array(limit));
  await whole.send(undefined);
  await whole.over;
  expect(whole.heard).toMatchObject([{ bytes: limit }]);
  const long = start(op);
  await long.send(new Uint8Array(limit));
  await long.send(new Uint8Array(1));
  await long.over;
  expect([long.heard[0]?.bytes, long.time.pending()]).toEqual([limit, 0]);
});

test('a request that falls silent is given up after a minute, and one that keeps coming is not', async () => {
  const { over, send, resets, time } = start(OP.call);
  for (let piece = 0; piece < 5; piece++) {
    await send(new Uint8Array(1));
    time.advance(59_000);
  }
  expect(resets).toEqual([]);
  time.advance(1000);
  await over;
  expect([resets, time.pending()]).toEqual([[RELAY_CODE.timeout], 0]);
});

test('a fault of the channel server is told, a way that broke is not', async () => {
  await expect(start(OP.call, new TypeError('ours')).over).rejects.toThrow('ours');
  await start(OP.call, new RelayError(RELAY_CODE.offline)).over;
});
