/** What goes wrong between a gateway and its relay: it comes back by itself, each time. */
import { once } from 'node:events';
import { createServer, connect as connectTcp } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { findProxy } from '../../relay-client/proxy.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import type { SetTimer } from '../../relay/wire/heartbeat.ts';
import { OP } from '../../relay/wire/op.ts';
import {
  collect,
  connectedTunnel,
  join,
  makeRelayKey,
  realClock,
  startTestRelay,
  startTestTunnel,
  type TestTunnel,
} from '../support/relay-here.ts';
import { startRelayProcess } from '../support/relay-process.ts';
import { tcpBetween } from '../support/tcp-between.ts';
import { until } from '../support/wait.ts';

const toEnd: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of toEnd.splice(0).toReversed()) await end();
});

function ended<Thing extends { close(): unknown }>(thing: Thing): Thing {
  toEnd.push(() => thing.close());
  return thing;
}

/** Time that goes by faster, on real sockets: so that 45 s of silence are soon over. */
const faster =
  (times: number): SetTimer =>
  (ms, run) =>
    realClock.setTimer(ms / times, run);

async function answers(url: string, tunnel: TestTunnel): Promise<boolean> {
  const joined = await join(url, tunnel.key.routingId);
  const stream = joined.open(OP.call);
  await stream.write(Uint8Array.of(7));
  stream.end();
  const answer = await collect(stream.answer);
  joined.close();
  return answer.equals(Buffer.of(7));
}

test('a relay that is killed in mid-stream: both sides learn of it, and the gateway is back when the relay is', async () => {
  const relay = await startRelayProcess();
  toEnd.push(() => relay.end('SIGKILL'));
  const signals: AbortSignal[] = [];
  const tunnel = ended(
    await connectedTunnel(relay.origin, {
      setTimer: faster(10),
      onStream: async (stream) => {
        if (relay.process.signalCode === null) signals.push(stream.signal);
        else await stream.answer(stream.bytes);
      },
    }),
  );
  const answer = collect((await join(relay.origin, tunnel.key.routingId)).open(OP.call).answer);
  const lost = expect(answer).rejects.toMatchObject({ code: RELAY_CODE.offline });
  await until(() => signals.length === 1);
  await relay.end('SIGKILL');
  await lost;
  await until(() => signals[0]!.aborted);
  await until(() => tunnel.state().lastError);
  const again = await startRelayProcess(relay.port);
  toEnd.push(() => again.end('SIGKILL'));
  await until(() => tunnel.state().phase === 'connected');
  expect(await answers(relay.origin, tunnel)).toBe(true);
});

test('a relay that is told to stop sends everybody away, lets streams finish, and ends with 0', async () => {
  const relay = await startRelayProcess(0, ['--limit', 'drainSpreadMs=1']);
  toEnd.push(() => relay.end('SIGKILL'));
  const tunnel = ended(await connectedTunnel(relay.origin));
  const joined = await join(relay.origin, tunnel.key.routingId);
  const stream = joined.open(OP.call);
  const answer = collect(stream.answer);
  await stream.write(Uint8Array.of(1));
  const end = relay.end('SIGTERM');
  await until(() => relay.log().includes('takes nobody new'));
  await until(() => tunnel.state().phase !== 'connected');
  await stream.write(Uint8Array.of(2));
  stream.end();
  expect(await answer).toEqual(Buffer.of(1, 2));
  expect(await end).toBe(0);
  expect(() => joined.open(OP.call)).toThrow();
});

test('a connection that went dead without a word is noticed by both, and made again', async () => {
  const relay = ended(await startTestRelay({ pingEveryMs: 100, pingSpreadMs: 1, deadAfterMs: 1200 }));
  const between = ended(await tcpBetween(relay.port));
  const tunnel = ended(
    await connectedTunnel(`ws://127.0.0.1:${between.port}`, { origin: relay.origin, setTimer: faster(40) }),
  );
  between.silence();
  await until(() =>
    relay.log.some((line) => line.includes('gateway gone') && line.includes(`"code":${RELAY_CODE.timeout}`)),
  );
  await until(() => tunnel.said.some((text) => text.includes('fell silent')));
  between.speak();
  await until(() => tunnel.state().phase === 'connected');
  expect(await answers(relay.url, tunnel)).toBe(true);
});

test('a name that is not found, and a port where nobody listens, are tried again', async () => {
  for (const url of ['ws://nobody.invalid', 'ws://127.0.0.1:1']) {
    const tunnel = ended(startTestTunnel(url, { setTimer: faster(100) }));
    let waits = 0;
    let wasWaiting = false;
    await until(() => {
      const isWaiting = tunnel.state().phase === 'waiting';
      if (isWaiting && !wasWaiting) waits += 1;
      wasWaiting = isWaiting;
      return waits >= 4;
    });
    expect(tunnel.state().lastError).toMatch(/ENOTFOUND|EAI_AGAIN|ECONNREFUSED/u);
    // The same failure is said once.
    expect(tunnel.said.length).toBe(1);
  }
});

test('a clock that jumps, either way, loses no connection that is alive', async () => {
  const relay = ended(await startTestRelay());
  let offset = 0;
  const tunnel = ended(await connectedTunnel(relay.url, { setTimer: faster(100), now: () => Date.now() + offset }));
  for (const jump of [3_600_000, -7_200_000, 86_400_000]) {
    offset += jump;
    const frames = tunnel.state().bytesIn;
    await until(() => tunnel.state().bytesIn > frames + 14);
    expect(tunnel.state().phase).toBe('connected');
  }
  expect(tunnel.said.length).toBe(1);
  expect(await answers(relay.url, tunnel)).toBe(true);
});

test('two gateways with one key: the owner of each is told, and they do not fight without end', async () => {
  const relay = ended(await startTestRelay());
  const key = makeRelayKey();
  const setTimer = faster(20);
  const options = { key, setTimer, nextEpoch: nextEpochs() };
  const [one, two] = [ended(startTestTunnel(relay.url, options)), ended(startTestTunnel(relay.url, options))];
  await until(() => one.state().isContested || two.state().isContested);
  const told = one.state().isContested ? one : two;
  expect(told.said.filter((text) => text.includes('same key')).length).toBe(1);
});

function nextEpochs(): () => number {
  let epoch = Date.now();
  return () => (epoch += 1);
}

test('a relay that takes it in and brings nothing through is never called connected', async () => {
  // There is room for one tag. Numbers that rise leave the tags in their order, the probe's last: it is refused.
  const relay = ended(await startTestRelay({ tagsPerGateway: 1 }));
  let risen = 0;
  const tunnel = ended(startTestTunnel(relay.url, { random: () => (risen += 1e-6) }));
  await until(() => tunnel.state().lastError?.includes('nothing came through'));
  expect(tunnel.said.some((text) => text.endsWith('connected'))).toBe(false);
});

describe('a proxy', () => {
  test('that the environment names is gone through, by CONNECT', async () => {
    const relay = ended(await startTestRelay());
    const asked: string[] = [];
    const proxy = createServer((inside) => {
      inside.on('error', () => undefined);
      inside.once('data', (head: Buffer) => {
        const [, host, port] = /^CONNECT ([^:]+):([0-9]+) HTTP/u.exec(head.toString()) ?? [];
        asked.push(`${host}:${port}`);
        const outside = connectTcp(Number(port), host);
        outside.on('error', () => undefined);
        outside.once('connect', () => {
          inside.write('HTTP/1.1 200 OK\r\n\r\n');
          inside.pipe(outside).pipe(inside);
        });
      });
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    toEnd.push(() => proxy.close());
    const { port } = proxy.address() as { port: number };
    ended(await connectedTunnel(relay.url, { environment: { HTTPS_PROXY: `127.0.0.1:${port}` } }));
    // The registration and the probe.
    expect(asked).toEqual([`127.0.0.1:${relay.port}`, `127.0.0.1:${relay.port}`]);
    ended(
      await connectedTunnel(relay.url, {
        environment: { https_proxy: 'http://127.0.0.1:1', NO_PROXY: 'a.example, 127.0.0.1' },
      }),
    );
  });

  test.each([
    ['wss://relay.example', '', true],
    ['wss://relay.example', '*', false],
    ['wss://relay.example', 'example', false],
    ['wss://relay.example', '.example', false],
    ['wss://relay.example', '*.example', false],
    ['wss://relay.example', 'lay.example', true],
    ['wss://relay.example', 'relay.example:443', false],
    ['wss://relay.example', 'relay.example:8443', true],
    ['wss://[::1]:8443', 'a,[::1]:8443', false],
    ['wss://[::1]:8443', '::1', false],
  ])('%s with NO_PROXY=%s: through the proxy is %s', (url, exceptions, isProxied) => {
    const environment = { HTTPS_PROXY: 'http://proxy:3128', NO_PROXY: exceptions };
    expect(findProxy(url, environment)).toBe(isProxied ? 'http://proxy:3128' : undefined);
  });
});
