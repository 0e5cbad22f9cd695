/**
 * The hostile network: a real client and a real gateway, and between them somebody who delays, holds back, cuts,
 * freezes, plays back, truncates, splices and flips, by seed. Whatever he does, a call is done once and its answer is
 * right to the byte, or it fails in words that its caller can act on. A schedule is repeated alone by its number:
 *
 *     SEED=20261121 STORM=17 vitest run test/e2e/storm.test.ts
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { connect, pair, PosternError, type PairedDevice, type PosternClient } from '../../clients/sdk/index.ts';
import { LONG, SEED, seededInteger, times } from '../channel/sampling.ts';
import { createFastTime } from '../support/fast-time.ts';
import { startFaultProxy, type Fault, type FaultProxy } from '../support/fault-proxy.ts';
import { newInvite } from '../support/invites.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

/** Schedules that run side by side, each with a device of its own. */
const LANES = 8;
const SCHEDULES = times(100, 1000);
const ONLY = process.env['STORM'];
/** However many schedules: what is written down of them here, and what a collector leaves. */
const MAX_GROWTH_BYTES = 16_000_000;
/** Of the clock that all go by: eight attempts to pick an answer up, each of which may be silent for 45 s. */
const LIMIT_MS = 10 * 60_000;

const crypto = gatewayCrypto('node');
/** One for each lane, so that a client's connections go to few addresses, as they do in life. */
const proxies: FaultProxy[] = [];
const time = createFastTime(() => proxies.reduce((sum, proxy) => sum + proxy.moved(), 0));
const platform = { crypto, now: time.now, setTimer: time.setTimer };

let home: string;
let service: ServiceHere;
const devices: PairedDevice[] = [];
let expected: ReadonlyMap<Kind, string>;

beforeAll(async () => {
  home = await temporaryHome();
  const flags = { 'access.requestsPerMinute': 1_000_000, 'access.requestsAtOnce': 1000 };
  service = await startServiceHere(home, flags, time);
  for (let lane = 0; lane < LANES; lane++) {
    proxies.push(await startFaultProxy(service.running.port));
    devices.push(await newDevice(lane));
  }
  const [plain] = proxies as [FaultProxy];
  plain.begin({ localAddress: '127.0.0.1', nextFault: () => ({ do: 'pass' }) });
  const answers = Object.entries(KINDS).map(async ([name, kind]) => {
    const response = await fetch(`${plain.url}${kind.path('0')}`, requestOf(kind, '0'));
    return [name as Kind, kind.content(await response.text(), '0')] as const;
  });
  expected = new Map(await Promise.all(answers));
  await Promise.all(proxies.map((proxy) => proxy.drop()));
});
afterAll(async () => {
  await Promise.all(proxies.map((proxy) => proxy.close()));
  await service?.stop();
  time.stop();
  await removeHome(home);
});

/** Pairs from an address of its own, since the gateway counts handshakes by where they come from. */
async function newDevice(lane: number): Promise<PairedDevice> {
  const proxy = proxies[lane]!;
  proxy.begin({ localAddress: `127.9.${lane}.1`, nextFault: () => ({ do: 'pass' }) });
  const storage = { read: async () => undefined, write: async () => {}, erase: async () => {} };
  const invite = { ...(await newInvite(service)), urls: [proxy.url] };
  return pair(invite, { crypto, storage, device: { name: 'a phone', platform: 'test' } });
}

/** What is asked. A marker stands in what leaves a trace, so that the trace can be found. */
interface Question {
  readonly path: (marker: string) => string;
  readonly body?: (marker: string) => object;
  /** What of the answer is the same each time. */
  readonly content: (text: string, marker: string) => string;
}

const asItIs = (text: string): string => text;
const MODEL = { model: 'foundation', temperature: 0 };
const KINDS = {
  models: { path: () => '/v1/models', content: asItIs },
  large: { path: () => '/openapi.json', content: asItIs },
  /** Refused, but written down: its row in the request log is what it does. */
  noted: {
    path: (marker) => `/v1/storm-${marker}`,
    body: () => ({}),
    content: (text, marker) => text.replaceAll(`storm-${marker}`, 'storm'),
  },
  stored: {
    path: () => '/v1/responses',
    body: (marker) => ({ ...MODEL, input: 'Say: yes', metadata: { storm: marker }, max_output_tokens: 3 }),
    content: (text) => JSON.stringify((JSON.parse(text) as { output: { content: unknown }[] }).output[0]?.content),
  },
  streamed: {
    path: () => '/v1/chat/completions',
    body: () => ({ ...MODEL, messages: [{ role: 'user', content: 'Count to five.' }], max_tokens: 8, stream: true }),
    content: (text) => text.replaceAll(/"(id|created)":("[^"]*"|\d+)/gu, ''),
  },
} satisfies Record<string, Question>;
type Kind = keyof typeof KINDS;

/** How likely each is to be asked; the model's are few, since they take longest. */
const ASKED: readonly Kind[] = ['models', 'models', 'large', 'large', 'noted', 'noted', 'noted', 'stored', 'streamed'];

function requestOf(kind: Question, marker: string): RequestInit {
  if (kind.body === undefined) return {};
  const headers = { 'content-type': 'application/json' };
  return { method: 'POST', headers, body: JSON.stringify(kind.body(marker)) };
}

interface Outcome {
  readonly kind: Kind;
  readonly marker: string;
  /** The error's code; `undefined` for the right answer. */
  readonly code: string | undefined;
}

async function ask(client: PosternClient, name: Kind, marker: string): Promise<Outcome> {
  const kind = KINDS[name];
  try {
    const response = await client.fetch(kind.path(marker), requestOf(kind, marker));
    const text = await response.text();
    expect(kind.content(text, marker)).toBe(expected.get(name));
    return { kind: name, marker, code: undefined };
  } catch (error) {
    if (!(error instanceof PosternError)) throw error;
    return { kind: name, marker, code: error.code };
  }
}

/** Where faults markRevoked: in the head of the HTTP message, in a small call, or far into a large answer. */
function drawPlace(below: (limit: number) => number): number {
  return below(below(4) === 0 ? 60_000 : 2500);
}

function drawFault(below: (limit: number) => number): Fault {
  const direction = below(3) === 0 ? 'up' : 'down';
  const afterBytes = drawPlace(below);
  switch (below(12)) {
    case 0:
      return { do: 'delay', delayMs: below(10) };
    case 1:
      return { do: 'hold', delayMs: below(30) };
    case 2:
      return { do: 'cut', direction, afterBytes };
    case 3:
      return { do: 'truncate', direction, afterBytes, by: below(2) === 0 ? 'fin' : 'rst' };
    case 4:
      return { do: 'freeze', direction: below(2) === 0 ? 'both' : direction, afterBytes };
    case 5:
      return { do: 'flip', direction, atByte: afterBytes, bit: below(8) };
    case 6:
      return { do: 'replay', delayMs: below(30), comesFirst: below(2) === 0 };
    case 7:
      return { do: 'splice', afterBytes: below(2) === 0 ? 0 : afterBytes };
    default:
      return { do: 'pass' };
  }
}

interface Storm {
  readonly outcomes: Outcome[];
  readonly struck: Fault['do'][];
}

/** One schedule: some calls at once, some after each other, through one proxy. */
async function runSchedule(number: number, storm: Storm): Promise<void> {
  const below = seededInteger(`storm ${number}`);
  const proxy = proxies[number % LANES]!;
  proxy.begin({ localAddress: `127.${10 + (number >> 8)}.${number & 255}.1`, nextFault: () => drawFault(below) });
  const client = connect({ ...devices[number % LANES]!, urls: [proxy.url] }, platform);
  try {
    for (let round = 0; round < 2; round++) {
      const kinds = Array.from({ length: 1 + below(3) }, () => ASKED[below(ASKED.length)]!);
      const calls = kinds.map((kind, at) => ask(client, kind, `${number}-${round}-${at}`));
      storm.outcomes.push(...(await within(LIMIT_MS, Promise.all(calls))));
    }
  } catch (error) {
    throw new Error(`schedule ${number} (SEED=${SEED} STORM=${number})`, { cause: error });
  } finally {
    client.close();
    storm.struck.push(...proxy.struck);
    await proxy.drop();
  }
}

function within<Value>(limitMs: number, promise: Promise<Value>): Promise<Value> {
  let cancel = (): void => undefined;
  const late = new Promise<never>((_, reject) => {
    cancel = time.setTimer(limitMs, () => reject(new Error('a call has neither an answer nor an error')));
  });
  return Promise.race([promise, late]).finally(() => cancel());
}

/** In lanes: each takes the next schedule of its own device when it is done with one. */
async function runAll(numbers: readonly number[]): Promise<Storm> {
  const storm: Storm = { outcomes: [], struck: [] };
  const lanes = Array.from({ length: LANES }, async (_, lane) => {
    for (const number of numbers) if (number % LANES === lane) await runSchedule(number, storm);
  });
  await Promise.all(lanes);
  return storm;
}

/** How often each question of this kind was acted on, by its marker. */
function effects(kind: Kind): Map<string, number> {
  const query =
    kind === 'noted'
      ? `SELECT substr(path, 11) AS marker, count(*) AS times FROM requests WHERE path LIKE '/v1/storm-%' GROUP BY path`
      : `SELECT json_extract(body, '$.metadata.storm') AS marker, count(*) AS times FROM responses GROUP BY marker`;
  const rows = service.running.database.prepare<[], { marker: string; times: number }>(query).all();
  return new Map(rows.map(({ marker, times: count }) => [marker, count]));
}

const begun = (): number =>
  service.running.database.prepare<[], number>('SELECT count(*) FROM sealed_actions').pluck().get()!;

/** When all was let go that was kept for somebody. */
async function calm(): Promise<void> {
  const { channelServer, listener } = service.running;
  await until(async () => {
    // A client's last cancels may come after its end, and the connection that they made would stay for a minute.
    await Promise.all(proxies.map((proxy) => proxy.drop()));
    return channelServer.counts().calls === 0 && listener.counts().sockets === 0;
  });
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

test('every call is done once and right, or fails in a word, and nothing is left of it', LONG, async () => {
  // The first ones fill caches and compile.
  const first = ONLY === undefined ? await runAll(numbersFrom(10_000, LANES * 2)) : undefined;
  await calm();
  const heapBefore = heapBytes();
  const storm = await runAll(ONLY === undefined ? numbersFrom(0, SCHEDULES) : [Number(ONLY)]);
  await calm();
  const outcomes = [...(first?.outcomes ?? []), ...storm.outcomes];
  for (const kind of ['noted', 'stored'] as const) {
    const done = effects(kind);
    for (const { marker, code } of outcomes.filter((outcome) => outcome.kind === kind)) {
      const count = done.get(marker) ?? 0;
      if (code === undefined) expect(count, `${kind} ${marker}`).toBe(1);
      else expect(count, `${kind} ${marker}, ${code}`).toBeLessThanOrEqual(1);
    }
  }
  const changing = outcomes.filter(({ kind }) => 'body' in KINDS[kind]).length;
  expect(begun()).toBeLessThanOrEqual(changing);
  expect(service.running.channelServer.counts().sessions).toBeLessThanOrEqual(devices.length * 4 + 8);
  expect(heapBytes() - heapBefore).toBeLessThan(MAX_GROWTH_BYTES);
  if (ONLY !== undefined) return;
  // It was a storm, and most got through it.
  expect(new Set(storm.struck).size).toBe(8);
  expect(outcomes.filter(({ code }) => code === undefined).length).toBeGreaterThan(outcomes.length * 0.7);
});

const numbersFrom = (start: number, count: number): number[] => Array.from({ length: count }, (_, at) => start + at);
