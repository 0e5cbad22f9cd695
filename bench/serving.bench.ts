/**
 * What serving costs around the engine: the latency that it adds, requests a second, the start, memory at rest, and how
 * soon a slot is free when a client leaves.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { loadBareEngine } from './serving/bare-engine.ts';
import { openConnection, request } from './serving/http-client.ts';
import { builtInModel, end, startProgram, startService, type Service } from './serving/processes.ts';
import { withScriptedRunner } from './serving/scripted-service.ts';

const SETTINGS = { 'inference.threads': 1, 'inference.contextTokens': 2048, 'inference.gpu': 'off' };
const QUESTION = 'What is the capital of France?';

function chat(fields: object): Buffer {
  const messages = [{ role: 'user', content: QUESTION }];
  return request('POST', '/v1/chat/completions', { model: 'foundation', messages, temperature: 0, ...fields });
}

/**
 * Calls of one token, one after the other: blocks of them through the service, through the least that two processes can
 * do, and through the engine alone in turn. (In turn one by one, each would find the other's processes asleep and the
 * caches cold, which is the machine's latency.)
 */
async function addedLatency(): Promise<void> {
  const [BLOCKS, CALLS] = [20, 100];
  const service = await startService({ settings: SETTINGS });
  const pair = await startProgram(new URL('./serving/bare-pair.js', import.meta.url), [builtInModel]);
  const bare = await loadBareEngine(builtInModel);
  const [toService, toPair] = [
    await openConnection(service.port),
    await openConnection((pair.first as { port: number }).port),
  ];
  const bytes = chat({ max_tokens: 1 });
  const times: [ours: number[], pair: number[], bare: number[]] = [[], [], []];
  for (let block = 0; block < BLOCKS; block += 1) {
    const ours = await timesMs(CALLS, () => toService.exchange(bytes));
    const floor = await timesMs(CALLS, () => toPair.exchange(bytes));
    const alone = await timesMs(CALLS, () => bare(QUESTION, 1));
    if (block === 0) continue;
    times[0].push(...ours);
    times[1].push(...floor);
    times[2].push(...alone);
  }
  for (const connection of [toService, toPair]) connection.close();
  await Promise.all([service.stop(), end(pair.process)]);
  const [ours, floor, alone] = times.map((all) => all.toSorted((a, b) => a - b));
  const row = (name: string, share: number, goal: string): void => {
    const at = (all: readonly number[] = []): number => all[Math.floor(all.length * share)] ?? 0;
    const [added, least] = [at(ours) - at(alone), at(floor) - at(alone)];
    console.log(
      `  ${name}   service ${ms(at(ours))}   two bare processes ${ms(at(floor))}   engine ${ms(at(alone))}   ` +
        `added ${ms(added)}, of which two processes need ${ms(least)}: ${(at(ours) / at(floor)).toFixed(2)} times   ${goal}`,
    );
  };
  console.log(`A call of one token, ${ours?.length} times`);
  row('p50', 0.5, 'goal 0.7 ms added, or 1.3 times');
  row('p99', 0.99, 'goal 10 ms added');
}

/** Requests a second over 32 connections, with an engine that answers at once, against Fastify echoing as much JSON. */
async function requestsPerSecond(): Promise<void> {
  const ours = await withScriptedRunner({ 'inference.concurrentSessions': 32, 'inference.continuousBatching': true });
  const echo = await startProgram(new URL('./serving/bare-echo.js', import.meta.url));
  const { port: echoPort } = echo.first as { port: number };
  const bytes = chat({});
  const echoBytes = request('POST', '/echo', JSON.parse(bytes.toString().split('\r\n\r\n')[1] ?? ''));
  let [best, bestEcho] = [0, 0];
  for (let round = 0; round < 6; round += 1) {
    best = Math.max(best, await load(ours.port, bytes));
    bestEcho = Math.max(bestEcho, await load(echoPort, echoBytes));
  }
  console.log(
    `\nRequests a second over 32 connections: ${best.toFixed(0)}, bare Fastify echo ${bestEcho.toFixed(0)}: ${((100 * best) / bestEcho).toFixed(1)} %   goal 20 %`,
  );
  await Promise.all([ours.stop(), end(echo.process)]);
}

async function load(port: number, bytes: Buffer): Promise<number> {
  const SECONDS = 2;
  const connections = await Promise.all(Array.from({ length: 32 }, () => openConnection(port)));
  const until = performance.now() + SECONDS * 1000;
  const counts = await Promise.all(
    connections.map(async (connection) => {
      let count = 0;
      for (; performance.now() < until; count += 1) await connection.exchange(bytes);
      connection.close();
      return count;
    }),
  );
  return counts.reduce((sum, count) => sum + count, 0) / SECONDS;
}

async function start(): Promise<void> {
  let [oursMs, bareMs] = [Infinity, Infinity];
  let residentMiB = 0;
  for (let round = 0; round < 7; round += 1) {
    bareMs = Math.min(bareMs, await timeMs(() => once(spawn(process.execPath, ['-e', '0']), 'exit')));
    const startedAtMs = performance.now();
    const service = await startService();
    const connection = await openConnection(service.port);
    await connection.exchange(request('GET', '/health'));
    oursMs = Math.min(oursMs, performance.now() - startedAtMs);
    connection.close();
    residentMiB = await restingMiB(service);
    await service.stop();
  }
  console.log(
    `\nStart to the first /health: ${oursMs.toFixed(0)} ms, "node -e 0" ${bareMs.toFixed(0)} ms: ${(oursMs / bareMs).toFixed(1)} times   goal 8`,
  );
  console.log(`Memory of the gateway at rest: ${residentMiB.toFixed(0)} MB   goal 120 MB`);
}

/** Resident memory when it has stopped changing. */
async function restingMiB({ process: child }: Service): Promise<number> {
  let last = -1;
  for (;;) {
    const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
    const now = Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024;
    if (now === last) return now / 1e6;
    last = now;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** From the moment that a client leaves in mid-stream until the next call, which waited for its slot, has its answer. */
async function freeSlot(): Promise<void> {
  const service = await startService({ settings: SETTINGS });
  const schema = { type: 'array', items: { type: 'string', minLength: 50 }, minItems: 1000 };
  const endless = chat({ stream: true, response_format: { type: 'json_schema', json_schema: { name: 'x', schema } } });
  const short = chat({ max_tokens: 1 });
  const times: number[] = [];
  for (let round = 0; round < 20; round += 1) {
    const leaver = await openConnection(service.port);
    leaver.socket.write(endless);
    await once(leaver.socket, 'data');
    const waiter = await openConnection(service.port);
    const answer = waiter.exchange(short);
    await untilQueued(service.port);
    const startedAtMs = performance.now();
    leaver.close();
    await answer;
    times.push(performance.now() - startedAtMs);
    waiter.close();
  }
  await service.stop();
  const sorted = times.toSorted((a, b) => a - b);
  console.log(
    `\nFrom a client's leaving in mid-stream to the answer of the call that waited: median ${ms(sorted[10])}, worst ${ms(sorted.at(-1))}`,
  );
}

async function untilQueued(port: number): Promise<void> {
  const connection = await openConnection(port);
  while (!(await connection.exchange(request('GET', '/health'))).includes('"queued":1'));
  connection.close();
}

async function timesMs(count: number, run: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  for (let turn = 0; turn < count; turn += 1) times.push(await timeMs(run));
  return times;
}

async function timeMs(run: () => Promise<unknown>): Promise<number> {
  const startedAtMs = performance.now();
  await run();
  return performance.now() - startedAtMs;
}

const ms = (milliseconds = 0): string => `${milliseconds.toFixed(2)} ms`;

await addedLatency();
await requestsPerSecond();
await start();
await freeSlot();
process.exit(0);
