/**
 * A relay that does anything to any frame, by seed: between a real gateway and several devices with the real SDK. A call
 * is done once and its answer is right to the byte, or it fails in words that its caller can act on. A schedule is
 * repeated alone by its number:
 *
 *     SEED=20261121 STORM=17 vitest run test/e2e/hostile-relay-storm.test.ts
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { encodeEnvelope } from '../../channel/envelope.ts';
import type { PairedDevice } from '../../clients/sdk/index.ts';
import { LONG, SEED, seededInteger, times } from '../channel/sampling.ts';
import { overheard } from '../support/canary.ts';
import { newPairedDevice } from '../support/channel-server-here.ts';
import { HONEST, type Misdeed, type Passing } from '../support/hostile-relay.ts';
import { drop } from '../support/misdeeds.ts';
import {
  allHeard,
  ask,
  calm,
  CANARY,
  countOf,
  startHome,
  startHostileWorld,
  type HostileWorld,
  type Method,
} from '../support/relay-home.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const SCHEDULES = times(20, 60);
const ONLY = process.env['STORM'];
const DEVICES = 2;
/** However patient: eight attempts to pick an answer up, each of which may be silent for 45 s, and others before. */
const LIMIT_MS = 15 * 60_000;
/** What a caller, or an SDK by itself, may ask again after. */
const INVITING = new Set(['offline', 'gateway_away', 'relay_refused', 'relay_busy', 'busy']);

let home: string;
let service: ServiceHere;
const devices: PairedDevice[] = [];

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
  for (let count = 0; count < DEVICES; count++) devices.push(await newPairedDevice(service));
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});

type Below = (limit: number) => number;

/** What is done to one frame. The gateway's own probe is let through, or there would be nobody to lie to. */
function storm(below: Below, { hostile }: HostileWorld, struck: Set<string>): Misdeed {
  /** Frames that others overtake. */
  const waiting: { readonly passing: Passing; left: number }[] = [];
  const overtake = (): void => {
    for (const held of waiting.splice(0)) {
      held.left -= 1;
      if (held.left > 0) waiting.push(held);
      else held.passing.link.forward(held.passing.from, held.passing.frame);
    }
  };
  const misdeeds: Readonly<Record<string, Misdeed>> = {
    lose: drop,
    repeat: ({ frame }) => [frame, frame],
    delay: (passing) => (waiting.push({ passing, left: 1 + below(6) }), []),
    flip: ({ frame }) => {
      if (frame.type !== 'data' || frame.bytes.length === 0) return [frame];
      const at = below(frame.bytes.length);
      return [{ ...frame, bytes: frame.bytes.map((byte, index) => (index === at ? byte ^ (1 << below(8)) : byte)) }];
    },
    end: ({ frame }) => {
      if (frame.type !== 'data') return [frame];
      return [{ ...frame, bytes: frame.bytes.subarray(0, below(frame.bytes.length + 1)), isEnd: true }];
    },
    reset: ({ frame }) =>
      'stream' in frame && frame.stream > 0
        ? [frame, { type: 'reset', stream: frame.stream, code: below(15) }]
        : [frame],
    hint: ({ frame }) => {
      if (frame.type !== 'data') return [frame];
      return [{ ...frame, bytes: encodeEnvelope({ kind: 'hint', code: 1 + below(12) }), isEnd: below(2) === 0 }];
    },
    splice: ({ frame }) => {
      const other = hostile.heard[below(hostile.heard.length || 1)];
      const bytes = (below(2) === 0 ? other?.asked : other?.answered)?.[0];
      return frame.type === 'data' && bytes !== undefined ? [{ ...frame, bytes }] : [frame];
    },
    grant: ({ frame }) => [frame, { type: 'window', stream: 0, credit: 1 + below(0x7fff_ffff) }],
    error: ({ frame }) => [frame, { type: 'error', code: below(15) }],
    away: ({ frame, from }) => {
      if (from === 'peer') return [frame];
      return [
        frame,
        { type: 'goaway', code: 12 + below(2), minMs: below(1000), spreadMs: below(1000), url: 'wss://x' },
      ];
    },
    cut: ({ link, frame }) => (link.cut(), [frame]),
    replay: ({ frame, link }) => {
      const other = hostile.heard[below(hostile.heard.length || 1)];
      if (link.role !== 'gateway' || other === undefined) return [frame];
      const own = link.open(other.op, new Uint8Array(8));
      own.send(Buffer.concat(other.asked).subarray(0, 32_000));
      own.end();
      return [frame];
    },
  };
  const names = Object.keys(misdeeds);
  return (passing) => {
    overtake();
    const { role } = passing.link;
    if (role === 'unauthenticated' || role === 'probe' || below(40) > 0) return HONEST(passing);
    const kind = names[below(names.length)]!;
    // Whatever ends a connection ends a great deal.
    const name = ['error', 'away', 'cut'].includes(kind) && below(3) > 0 ? 'delay' : kind;
    struck.add(name);
    return misdeeds[name]!(passing);
  };
}

const KINDS = ['small', 'small', 'streamed', 'large'];

interface Outcome {
  readonly method: Method;
  readonly path: string;
  readonly code: string;
}

async function runSchedule(number: number, struck: Set<string>): Promise<readonly Outcome[]> {
  const below = seededInteger(`hostile relay ${number}`);
  const world = await startHostileWorld();
  const at = await startHome(world, service);
  const clients = devices.map((device) => at.newClient(device));
  const { hostile, time } = world;
  hostile.misdeed = storm(below, world, struck);
  const calls = Array.from({ length: 6 }, async (_, call): Promise<Outcome> => {
    const method = below(3) === 0 ? 'GET' : 'POST';
    const path = `/v1/${KINDS[below(KINDS.length)]!}/${number}-${call}`;
    return { method, path, code: await ask(clients[call % DEVICES]!, method, path) };
  });
  const beganMs = time.now();
  const outcomes = await Promise.all(calls);
  expect(time.now() - beganMs).toBeLessThan(LIMIT_MS);
  for (const { method, path, code } of outcomes) {
    const count = countOf(at, path);
    if (code === 'done') expect(count, path).toBeGreaterThan(0);
    if (method === 'GET') continue;
    expect(count, `${path} ${code}`).toBeLessThanOrEqual(INVITING.has(code) ? 0 : 1);
  }
  hostile.misdeed = HONEST;
  // What was promised in the storm may still hold: it may take them a while to find each other.
  for (const client of clients) await until(async () => (await ask(client, 'GET', '/v1/small/after')) === 'done');
  for (const client of clients) expect(await ask(client, 'POST', `/v1/small/${number}-after`)).toBe('done');
  // What the relay holds for them goes with them, or else after a minute.
  for (const client of clients) client.close();
  await calm(world, at);
  expect(at.channelServer.counts().sessions).toBeLessThanOrEqual(64 + 4 * DEVICES);
  expect(overheard(allHeard(hostile), new Map([['canary', Buffer.from(CANARY)]]))).toEqual([]);
  return outcomes;
}

test('every call is done once and right, or fails in a word, and nothing is left of it', LONG, async () => {
  const struck = new Set<string>();
  const outcomes: Outcome[] = [];
  const numbers = ONLY === undefined ? Array.from({ length: SCHEDULES }, (_, at) => at) : [Number(ONLY)];
  for (const number of numbers) {
    try {
      outcomes.push(...(await runSchedule(number, struck)));
    } catch (error) {
      throw new Error(`schedule ${number} (SEED=${SEED} STORM=${number})`, { cause: error });
    }
  }
  if (ONLY !== undefined) return;
  // It was a storm, and some got through it.
  expect(struck.size).toBeGreaterThan(8);
  expect(outcomes.filter(({ code }) => code === 'done').length).toBeGreaterThan(outcomes.length * 0.3);
});
