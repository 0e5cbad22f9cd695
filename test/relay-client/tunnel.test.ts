/** A gateway and a device that find each other through a real relay. */
import { randomBytes } from 'node:crypto';
import { afterEach, expect, test } from 'vitest';
import type { RelayLimits } from '../../relay/limits.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import { OP } from '../../relay/wire/op.ts';
import {
  collect,
  connectedTunnel,
  DEVICE_TAG,
  join,
  makeRelayKey,
  PAIRING_TAG,
  startTestRelay,
  startTestTunnel,
  tagOf,
  type TestRelay,
} from '../support/relay-here.ts';
import { until } from '../support/wait.ts';

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});

async function relayHere(limits: Partial<RelayLimits> = {}): Promise<TestRelay> {
  const relay = await startTestRelay(limits);
  toEnd.push(() => relay.close());
  return relay;
}

function ended<Thing extends { close(): void }>(thing: Thing): Thing {
  toEnd.push(() => thing.close());
  return thing;
}

test('a request goes through the relay and its answer comes back, byte for byte', async () => {
  const relay = await relayHere({ bytesPerSecond: 0 });
  const tunnel = ended(await connectedTunnel(relay.url));
  const joined = ended(await join(relay.url, tunnel.key.routingId));
  const sent = randomBytes(3_000_000);
  const stream = joined.open(OP.call);
  const answer = collect(stream.answer);
  await stream.write(sent);
  stream.end();
  expect((await answer).equals(sent)).toBe(true);
  expect(relay.heldBytes()).toBe(0);
  expect(tunnel.state()).toMatchObject({ phase: 'connected', routingId: tunnel.key.routingId, isContested: false });
});

test('many streams at once keep to themselves', async () => {
  const relay = await relayHere({ bytesPerSecond: 0 });
  const tunnel = ended(await connectedTunnel(relay.url));
  const joined = ended(await join(relay.url, tunnel.key.routingId));
  await Promise.all(
    Array.from({ length: 32 }, async (_, index) => {
      const sent = Buffer.alloc(100_000 + index, index);
      const stream = joined.open(OP.call);
      const answer = collect(stream.answer);
      await stream.write(sent);
      stream.end();
      expect((await answer).equals(sent)).toBe(true);
    }),
  );
});

test('a reset from the device fires the signal at the gateway, and one from the gateway ends the device’s answer', async () => {
  const relay = await relayHere();
  const signals: AbortSignal[] = [];
  const tunnel = ended(
    await connectedTunnel(relay.url, {
      onStream: (stream) => {
        signals.push(stream.signal);
        if (signals.length === 2) stream.reset(RELAY_CODE.tooMany);
      },
    }),
  );
  const joined = ended(await join(relay.url, tunnel.key.routingId));
  const first = joined.open(OP.call);
  await until(() => signals.length === 1);
  first.reset();
  await until(() => signals[0]!.aborted);
  await expect(collect(joined.open(OP.call).answer)).rejects.toMatchObject({ code: RELAY_CODE.tooMany });
});

test('a denied tag ends its streams at once, and lets nobody in any more', async () => {
  const relay = await relayHere();
  const tunnel = ended(await connectedTunnel(relay.url, { onStream: () => undefined }));
  const joined = await join(relay.url, tunnel.key.routingId);
  const answer = collect(joined.open(OP.call).answer);
  tunnel.deny([DEVICE_TAG]);
  await expect(answer).rejects.toMatchObject({ code: RELAY_CODE.revoked });
  await expect(join(relay.url, tunnel.key.routingId)).rejects.toMatchObject({ code: RELAY_CODE.offline });
  ended(await join(relay.url, tunnel.key.routingId, PAIRING_TAG));
});

test('a tag that is no longer given is taken back, a new one let in', async () => {
  const relay = await relayHere();
  let tag = tagOf(5);
  const tunnel = ended(
    await connectedTunnel(relay.url, { tags: () => [{ tag, expiresAtMs: Date.now() + 60_000, tagClass: 'device' }] }),
  );
  ended(await join(relay.url, tunnel.key.routingId, tagOf(5)));
  tag = tagOf(6);
  tunnel.changed();
  ended(await until(() => join(relay.url, tunnel.key.routingId, tagOf(6)).catch(() => undefined)));
  await expect(join(relay.url, tunnel.key.routingId, tagOf(5))).rejects.toMatchObject({ code: RELAY_CODE.offline });
});

test('the maker of an answer is asked for no more than the device reads', async () => {
  const relay = await relayHere({ bytesPerSecond: 0 });
  let made = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    for (;;) {
      made += 16_384;
      yield new Uint8Array(16_384);
    }
  }
  const tunnel = ended(
    await connectedTunnel(relay.url, { onStream: (stream) => stream.answer(endless()).catch(() => undefined) }),
  );
  const joined = ended(await join(relay.url, tunnel.key.routingId));
  const reader = joined.open(OP.call).answer[Symbol.asyncIterator]();
  await until(() => made >= 262_144);
  // A stream of another call is as quick as ever, and by then nothing more had been made.
  for (let calls = 0; calls < 20; calls += 1) {
    const other = ended(await join(relay.url, tunnel.key.routingId));
    const stream = other.open(OP.call);
    await stream.answer[Symbol.asyncIterator]().next();
    stream.reset();
  }
  const before = made;
  expect(before).toBeLessThan(21 * (262_144 + 32_768));
  let read = 0;
  while (read < 1_000_000) read += (await reader.next()).value?.length ?? 0;
  expect(made - before).toBeGreaterThan(500_000);
});

test('a gateway that handles a stream badly loses that stream and nothing else', async () => {
  const relay = await relayHere();
  let calls = 0;
  const tunnel = ended(
    await connectedTunnel(relay.url, {
      onStream: (stream) => {
        calls += 1;
        if (calls === 1) throw new Error('planted');
        if (calls === 2) return Promise.reject(new Error('planted'));
        return stream.answer(stream.bytes);
      },
    }),
  );
  const joined = ended(await join(relay.url, tunnel.key.routingId));
  await expect(collect(joined.open(OP.call).answer)).rejects.toMatchObject({ code: RELAY_CODE.internal });
  await expect(collect(joined.open(OP.call).answer)).rejects.toMatchObject({ code: RELAY_CODE.internal });
  const stream = joined.open(OP.call);
  await stream.write(Uint8Array.of(1));
  stream.end();
  expect(await collect(stream.answer)).toEqual(Buffer.of(1));
  expect(tunnel.said.join()).not.toContain('planted');
});

test('a relay that calls itself something else gets nothing signed', async () => {
  const relay = await relayHere();
  const key = makeRelayKey();
  let signed = 0;
  const sign = (bytes: Uint8Array): Uint8Array => {
    signed += 1;
    return key.sign(bytes);
  };
  const tunnel = ended(startTestTunnel(relay.url, { origin: 'wss://relay.example', key: { ...key, sign } }));
  await until(() => tunnel.state().lastError?.includes('nothing was signed'));
  expect(signed).toBe(0);
});

test('a clock that is hours off lets the same devices in', async () => {
  const relay = await relayHere();
  for (const hours of [-36, 36]) {
    const now = (): number => Date.now() + hours * 3_600_000;
    const tunnel = ended(
      await connectedTunnel(relay.url, {
        now,
        tags: () => [{ tag: DEVICE_TAG, expiresAtMs: now() + 3_600_000, tagClass: 'device' }],
      }),
    );
    ended(await join(relay.url, tunnel.key.routingId));
  }
});

test('of a hundred streams one is not read: the others’ answers come whole, and the relay holds no more than that one’s', async () => {
  const relay = await relayHere({ bytesPerSecond: 0, streamsPerConnection: 100 });
  async function* pieces(count: number): AsyncGenerator<Uint8Array> {
    for (let made = 0; made < count; made += 1) yield new Uint8Array(16_384).fill(made);
  }
  const tunnel = ended(
    await connectedTunnel(relay.url, {
      onStream: async (stream) => {
        const [kind] = await collect(stream.bytes);
        await stream.answer(pieces(kind === 1 ? 1_000_000 : 40)).catch(() => undefined);
      },
    }),
  );
  const joined = ended(await join(relay.url, tunnel.key.routingId));
  const ask = async (kind: number): Promise<AsyncIterable<Uint8Array>> => {
    const stream = joined.open(OP.call);
    await stream.write(Uint8Array.of(kind));
    stream.end();
    return stream.answer;
  };
  const slow = (await ask(1))[Symbol.asyncIterator]();
  await slow.next();
  const answers = await Promise.all(Array.from({ length: 99 }, async () => collect(await ask(0))));
  expect(answers.map(({ length }) => length)).toEqual(answers.map(() => 40 * 16_384));
  expect(relay.heldBytes()).toBeLessThanOrEqual(262_144);
});
