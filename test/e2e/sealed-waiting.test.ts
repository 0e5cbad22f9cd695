/** A sealed stream that waits in line for its model: it begins, and says that it lives, before its turn comes. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { decodeAnswerHead } from '../../channel/head.ts';
import type { AnswerEvent } from '../../channel/answer-reader.ts';
import { STREAM_BEGINS_MS } from '../../gateway/late-streams.ts';
import { PAD_MS } from '../../gateway/sealed/stream-sealing.ts';
import { createFakeTime } from '../core/fake-time.ts';
import { newInvite } from '../support/invites.ts';
import { pairRaw, rawSession, request, startCall, type RunningCall } from '../support/raw-device.ts';
import { endless, user } from '../support/request-log.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const time = createFakeTime(Date.now());
let home: string;
let service: ServiceHere;

beforeAll(async () => {
  home = await temporaryHome();
  const clock = { ...time, elapsed: time.now };
  service = await startServiceHere(home, { 'inference.concurrentSessions': 1 }, clock);
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});

const queued = () => [...service.running.inference.status().inflight.values()].some((count) => count.queued > 0);
const ask = (messages: object) => ({ model: 'foundation', ...messages, stream: true });

test('it gets its head after 15 seconds, a sign of life each 15 seconds after that, and its answer in the end', async () => {
  const device = await pairRaw(service.url, await newInvite(service));
  const session = await rawSession(service.url, device);
  const begin = (json: object): Promise<RunningCall> =>
    startCall(`${service.url}/secure/call`, session, request('POST', '/v1/chat/completions', { json }));
  const first = begin(ask(endless));
  await until(() => [...service.running.inference.status().inflight.values()].some(({ running }) => running > 0));
  const second = begin(ask({ ...user('What is the capital of France?'), max_tokens: 4 }));
  await until(queued);
  // The outer answer begins with its header; nothing is sealed yet.
  const passing = setInterval(() => time.advance(50), 1);
  const waiting = await second;
  clearInterval(passing);
  const events: AnswerEvent[] = [];
  let bytes = 0;
  waiting.response.on('data', (piece: Buffer) => {
    bytes += piece.length;
    events.push(...waiting.call.answer.push(piece));
  });
  time.advance(STREAM_BEGINS_MS);
  await until(() => events.some(({ type }) => type === 'head'));
  const [head] = events as [Extract<AnswerEvent, { type: 'head' }>];
  expect(decodeAnswerHead(head.data).status).toBe(200);
  // What the answer begins with, whatever the model will say: collected for a tick.
  await until(() => (time.advance(50), events.length === 2));
  for (let pad = 1; pad <= 3; pad++) {
    const before = bytes;
    time.advance(PAD_MS);
    await until(() => bytes > before);
    // A PAD: 256 bytes, its header and its tag, and no event.
    expect([bytes - before, events.length]).toEqual([277, 2]);
  }
  expect(queued()).toBe(true);
  (await first).response.destroy();
  const going = setInterval(() => time.advance(1000), 1);
  await until(() => events.at(-1)?.type === 'end');
  clearInterval(going);
  const text = events.map((event) => (event.type === 'data' ? Buffer.from(event.data).toString() : '')).join('');
  expect(text.trimEnd().endsWith('data: [DONE]')).toBe(true);
});
