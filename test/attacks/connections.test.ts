import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { MAX_PIPELINED } from '../../gateway/connection.ts';
import { createKey, setSettings, type MadeKey } from '../support/access-keys.ts';
import { parseMetrics } from '../support/prometheus.ts';
import { rawConnection, rawRequest, type RawConnection } from '../support/raw-connection.ts';
import { endless, user } from '../support/request-log.ts';
import { isThorough, seed } from '../support/sampling.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const PLACES = 16;
const FOUNDATION = { model: 'foundation', temperature: 0 };
const MIB = 1024 * 1024;
/** What may still be reachable of many connections: what was compiled for them, and the request log's pages. */
const MAX_HEAP_GROWTH_BYTES = 8 * MIB;
/**
 * What the process may have grown by when all that can be collected is collected. While much is allocated, V8 widens its
 * young generation, to 128 MiB, whatever is reachable.
 */
const MAX_RESIDENT_GROWTH_BYTES = 64 * MIB;

let home: string;
let server: TestServer;
let key: MadeKey;
let runToken: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-connections-'));
  await setSettings(home, { 'access.requireKeyOnLoopback': true, 'access.requestsPerMinute': 1_000_000 });
  key = await createKey(home);
  const probe = new URL('../support/heap-probe.mjs', import.meta.url).href;
  const environment = { NODE_OPTIONS: `--import ${probe}`, SVC_TEST_HEAP_PROBE: join(home, 'probe') };
  server = await startServer({ home, environment });
  runToken = await server.runToken();
});
afterAll(async () => {
  await server.stop();
  await rm(home, { recursive: true, force: true });
});

const withToken = () => ({ 'x-postern-run-token': runToken });
const withKey = () => ({ authorization: `Bearer ${key.token}` });
const chat = (body: object) =>
  rawRequest({ path: '/v1/chat/completions', headers: withKey(), body: { ...FOUNDATION, ...body } });
const endlessStream = () => chat({ ...endless, stream: true });
const shortChat = (stream: boolean) => chat({ ...user('Say: yes'), max_tokens: 3, stream });

/** Sockets, requests and responses that the service has without a connection: prototypes, and the probe. */
const MAX_OBJECTS = 12;

/** A question of the owner's, over a connection that is closed after it. */
async function asOwner(path: string): Promise<string> {
  const connection = await rawConnection(server.port);
  connection.socket.write(rawRequest({ path, headers: { ...withToken(), connection: 'close' } }));
  return (await connection.all()).split('\r\n\r\n').slice(1).join('\r\n\r\n');
}

async function metrics(): Promise<ReadonlyMap<string, number>> {
  const connection = await rawConnection(server.port);
  connection.socket.write(rawRequest({ path: '/metrics', version: '1.0', headers: withToken() }));
  return parseMetrics((await connection.all()).split('\r\n\r\n').slice(1).join('\r\n\r\n'));
}

const sum = (samples: ReadonlyMap<string, number>, name: string): number =>
  [...samples].filter(([sample]) => sample.startsWith(`${name}{`)).reduce((all, [, value]) => all + value, 0);

/** Resolves when nothing is left of any connection but the one that asks. */
async function allIsOver(): Promise<void> {
  await until(async () => {
    const samples = await metrics();
    const left = ['postern_http_requests_in_flight', 'postern_http_sockets'].map((name) => sum(samples, name) - 1);
    left.push(sum(samples, 'postern_inference_running'), sum(samples, 'postern_inference_waiting'));
    return left.every((count) => count === 0);
  });
}

/** After as thorough a collection as there is. */
interface Reachable {
  /** Sockets, requests and responses. */
  readonly objects: number;
  readonly heapBytes: number;
  /** Of the process. */
  readonly residentBytes: number;
}

async function reachable(): Promise<Reachable> {
  return (await json(connect(join(home, 'probe')))) as Reachable;
}

/** Takes every place of the key at once. @returns the status of each answer */
function takeAllPlaces(): Promise<readonly number[]> {
  const asked = Array.from({ length: PLACES }, async () => {
    const response = await fetch(`${server.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { ...withKey(), connection: 'close' },
      body: JSON.stringify({ ...FOUNDATION, ...user('Say: yes'), max_tokens: 1 }),
    });
    await response.text();
    return response.status;
  });
  return Promise.all(asked);
}

const EVERY_PLACE_IS_FREE = Array.from({ length: PLACES }, () => 200);

describe('Requests that outlive their client, to keep the service busy for nobody', () => {
  test('eight streams on one connection that is cut: none goes on, and no place of the key is lost', async () => {
    const connection = await rawConnection(server.port);
    connection.socket.write(endlessStream().repeat(8));
    await connection.receives(/data: /);
    expect(sum(await metrics(), 'postern_http_requests_in_flight')).toBe(2);
    connection.socket.resetAndDestroy();
    await allIsOver();
    expect(await takeAllPlaces()).toEqual(EVERY_PLACE_IS_FREE);
  });

  test('eight streams whose client closes its connection in an orderly way end as well', async () => {
    const connection = await rawConnection(server.port);
    connection.socket.write(endlessStream().repeat(8));
    await connection.receives(/data: /);
    connection.socket.destroy();
    await allIsOver();
    expect(await takeAllPlaces()).toEqual(EVERY_PLACE_IS_FREE);
  });

  test('an answer that would come whole stops when its client leaves, though nothing is written to it', async () => {
    const connection = await rawConnection(server.port);
    connection.socket.write(chat(endless));
    await until(async () => sum(await metrics(), 'postern_inference_running') === 1);
    connection.socket.destroy();
    await allIsOver();
  });

  test('a client that says its last word and then leaves is noticed, too', async () => {
    const connection = await rawConnection(server.port);
    connection.socket.end(chat(endless).repeat(2));
    await until(async () => sum(await metrics(), 'postern_inference_running') === 1);
    connection.socket.destroy();
    await allIsOver();
  });

  test('one connection has one request under way, and all that it sends are answered in their order', async () => {
    const { most, text } = await mostInFlight(async () => {
      const connection = await rawConnection(server.port);
      connection.socket.end(plainRequests(MAX_PIPELINED));
      return connection.all();
    });
    const answered = [...text.matchAll(/HTTP\/1\.1 (?!102)(\d+)/g)].map(([, status]) => Number(status));
    expect(answered).toEqual(Array.from({ length: MAX_PIPELINED }, (_, at) => STATUSES[at % 3]));
    expect(most).toBeLessThanOrEqual(MOST);
  });

  test('one that sends more ahead of their answers than may wait gets one clear answer, and none to what it asked for', async () => {
    const connection = await rawConnection(server.port);
    connection.socket.end(plainRequests(2 * MAX_PIPELINED));
    const text = await connection.all();
    expect(text).toMatch(/^HTTP\/1\.1 429 [^]*x-request-id: [^]*More than 100 requests/);
    expect(text.match(/HTTP\/1\.1/g)).toHaveLength(1);
    await allIsOver();
  });

  test('one that sends a hundred thousand without waiting for an answer is cut, and holds up nobody', async () => {
    const { most } = await mostInFlight(async () => {
      const connection = await rawConnection(server.port);
      connection.socket.write(endlessStream() + plainRequests(93_928));
      return connection.all();
    });
    expect(most).toBeLessThanOrEqual(MOST);
    await allIsOver();
  });
});

/** The connection's one, the question itself, and the question before it, of whose end its asker hears first. */
const MOST = 3;
const PATHS = ['/health', '/admin/keys/none', '/nothing-here'];
const STATUSES = [200, 405, 404];
const plainRequests = (count: number): string =>
  Array.from({ length: count }, (_, at) => rawRequest({ path: PATHS[at % 3]!, headers: withToken() })).join('');

/** @returns with what the attack got: how many requests were in flight at most, the question itself among them */
async function mostInFlight(attack: () => Promise<string>): Promise<{ readonly most: number; readonly text: string }> {
  let most = 0;
  const over = new AbortController();
  const watching = (async () => {
    while (!over.signal.aborted) most = Math.max(most, sum(await metrics(), 'postern_http_requests_in_flight'));
  })();
  const text = await attack().finally(() => over.abort());
  await watching;
  return { most, text };
}

describe('Half-closed connections', () => {
  test('a dozen streams one after another leave nothing behind on their connection', async () => {
    const connection = await rawConnection(server.port);
    connection.socket.end(shortChat(true).repeat(12));
    expect((await connection.all()).match(/data: \[DONE\]/g)).toHaveLength(12);
    expect(server.log()).not.toContain('MaxListeners');
  });

  test.each([
    ['a quick answer', () => rawRequest({ path: '/health', headers: withToken() }), /"status"/],
    ['an answer of a model', () => chat({ ...user('Tell me a story.'), max_tokens: 60 }), /"finish_reason"/],
    ['a stream', () => shortChat(true), /data: \[DONE\]/],
    [
      'two answers, in order',
      () => shortChat(false) + rawRequest({ path: '/health', headers: withToken() }),
      /"finish_reason"[\s\S]*"status"/,
    ],
    ['an answer of HTTP/1.0', () => rawRequest({ path: '/health', version: '1.0', headers: withToken() }), /"status"/],
  ])('a client that shuts its sending side still gets %s', async (_what, asked, answer) => {
    const connection = await rawConnection(server.port);
    connection.socket.end(asked());
    expect(await connection.all()).toMatch(answer);
  });
});

describe('Random connections that pipeline, cut, stall, half-close, reset and send garbage', () => {
  const REQUESTS: Readonly<Record<string, () => string>> = {
    health: () => rawRequest({ path: '/health' }),
    anonymous: () => rawRequest({ path: '/v1/models' }),
    models: () => rawRequest({ path: '/v1/models', headers: withKey() }),
    large: () => rawRequest({ path: '/openapi.json' }),
    chat: () => shortChat(false),
    stream: () => shortChat(true),
    endless: endlessStream,
    endlessWhole: () => chat(endless),
    events: () => rawRequest({ path: '/admin/events', headers: withToken() }),
    malformed: () => chat({ messages: 'none' }),
    unfinished: () =>
      `${rawRequest({ path: '/v1/chat/completions', headers: { ...withKey(), 'content-length': '999' } })}{"mo`,
    chunked: () =>
      `${rawRequest({ method: 'POST', path: '/v1/chat/completions', headers: { ...withKey(), 'transfer-encoding': 'chunked' } })}5\r\n{"mod`,
    expect: () => rawRequest({ path: '/health', headers: { expect: '100-continue' } }),
    upgrade: () => rawRequest({ path: '/health', headers: { connection: 'upgrade', upgrade: 'websocket' } }),
    connect: () => rawRequest({ method: 'CONNECT', path: 'localhost:443' }),
    sealed: () =>
      rawRequest({ method: 'POST', path: '/secure/call', headers: { 'content-length': '9' } }) + '\0'.repeat(9),
    garbage: () => '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\r\n\r\n',
    halfHead: () => 'GET /health HTTP/1.1\r\nHost: loc',
  };
  const ENDINGS: Readonly<Record<string, (connection: RawConnection) => Promise<void> | void>> = {
    cutAtOnce: ({ socket }) => void socket.destroy(),
    resetAtOnce: ({ socket }) => void socket.resetAndDestroy(),
    cutLater: async (connection) => {
      await firstBytes(connection);
      connection.socket.destroy();
    },
    resetLater: async (connection) => {
      await firstBytes(connection);
      connection.socket.resetAndDestroy();
    },
    halfCloseAndCut: ({ socket }) => {
      socket.end();
      setImmediate(() => socket.destroy());
    },
    stallAndCut: async ({ socket }) => {
      socket.pause();
      // As long as the owner's question takes; the socket is not read meanwhile.
      await asOwner('/health');
      socket.destroy();
    },
    stallAndReset: async ({ socket }) => {
      socket.pause();
      await asOwner('/health');
      socket.resetAndDestroy();
    },
  };
  const connections = fc.record({
    requests: fc.array(fc.constantFrom(...Object.keys(REQUESTS)), { minLength: 1, maxLength: 12 }),
    ending: fc.constantFrom(...Object.keys(ENDINGS)),
    /** Where the bytes are cut in two, so that a request may come in the middle of another's answer. */
    cutAt: fc.double({ min: 0, max: 1, noNaN: true }),
  });
  const LANES = 16;

  /** Of what may never be answered, it waits as long as a few other questions take. */
  async function firstBytes({ socket }: RawConnection): Promise<void> {
    const others = async () => {
      for (let question = 0; question < 5; question++) await asOwner('/health');
    };
    await Promise.race([once(socket, 'data'), once(socket, 'close'), others()]).catch(() => undefined);
  }

  async function attack({ requests, ending, cutAt }: { requests: string[]; ending: string; cutAt: number }) {
    const connection = await rawConnection(server.port);
    const bytes = Buffer.from(requests.map((name) => REQUESTS[name]!()).join(''), 'latin1');
    const at = Math.floor(bytes.length * cutAt);
    connection.socket.write(bytes.subarray(0, at));
    await new Promise(setImmediate);
    connection.socket.write(bytes.subarray(at));
    await ENDINGS[ending]!(connection);
    if (!connection.socket.closed) await once(connection.socket, 'close');
  }

  async function attackAll(all: Parameters<typeof attack>[0][]): Promise<void> {
    const lanes = Array.from({ length: LANES }, async () => {
      for (let next = all.pop(); next !== undefined; next = all.pop()) await attack(next);
    });
    await Promise.all(lanes);
  }

  test('afterwards nothing is left of them: no request, no socket, no call of a model, no place, no memory', async () => {
    const numRuns = isThorough ? 5000 : 250;
    // The first ones warm the service up.
    await attackAll(fc.sample(connections, { numRuns: isThorough ? 5000 : 200, seed: seed + 1 }));
    await allIsOver();
    const before = await reachable();
    await attackAll(fc.sample(connections, { numRuns, seed }));
    await allIsOver();
    expect(await takeAllPlaces()).toEqual(EVERY_PLACE_IS_FREE);
    const left = await until(async () => {
      const now = await reachable();
      return now.objects <= MAX_OBJECTS ? now : undefined;
    });
    expect(left.heapBytes - before.heapBytes).toBeLessThan(MAX_HEAP_GROWTH_BYTES);
    expect(left.residentBytes - before.residentBytes).toBeLessThan(MAX_RESIDENT_GROWTH_BYTES);
    const status = JSON.parse(await asOwner('/admin/status')) as { inflight: object };
    expect(status.inflight).toEqual({});
    expect(server.log()).not.toMatch(/unhandled|uncaught|\n\s+at /i);
  }, 1_200_000);
});
