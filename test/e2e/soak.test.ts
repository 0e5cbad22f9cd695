/**
 * Many requests of every style, streamed and not, a third of them left at a random moment; afterwards nothing is held
 * of them: no call, no sequence, no socket, no descriptor, no process.
 */
import { once } from 'node:events';
import { mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isThorough, seed } from '../support/sampling.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const REQUESTS = isThorough ? 2000 : 200;
const AT_ONCE = 12;
const SESSIONS = 4;

let server: TestServer;
beforeAll(async () => {
  const home = await mkdtemp(join(tmpdir(), 'postern-home-'));
  const settings = { 'inference.continuousBatching': true, 'inference.concurrentSessions': SESSIONS };
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings));
  server = await startServer({ home });
});
afterAll(() => server.stop());

const MESSAGES = [{ role: 'user', content: 'What is the capital of France?' }];

/** Each style's path, and its body for an answer of at most so many tokens. */
const STYLES = [
  ['/v1/chat/completions', (tokens: number) => ({ messages: MESSAGES, max_tokens: tokens })],
  ['/v1/completions', (tokens: number) => ({ prompt: 'Once upon a time', max_tokens: tokens })],
  ['/v1/messages', (tokens: number) => ({ messages: MESSAGES, max_tokens: tokens })],
  ['/v1/responses', (tokens: number) => ({ input: 'Hello', max_output_tokens: Math.max(16, tokens) })],
  ['/api/chat', (tokens: number) => ({ messages: MESSAGES, options: { num_predict: tokens } })],
  ['/api/generate', (tokens: number) => ({ prompt: 'Hello', options: { num_predict: tokens } })],
] as const;

const requests = fc.record({
  style: fc.constantFrom(...STYLES),
  stream: fc.boolean(),
  tokens: fc.integer({ min: 1, max: 40 }),
  /** How many pieces of the answer are read before the client leaves; undefined reads it all. */
  leavesAfter: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined, freq: 2 }),
});
type Request = typeof requests extends fc.Arbitrary<infer Value> ? Value : never;

interface Outcome {
  readonly status: number | 'left';
  /** What was read of the answer. */
  readonly text: string;
}

const LEFT: Outcome = { status: 'left', text: '' };

async function send(request: Request): Promise<Outcome> {
  const leave = new AbortController();
  // Whoever left does not wait: an answer that ends in the very moment of the abort may never be told to be over.
  const left = once(leave.signal, 'abort').then(() => LEFT);
  return Promise.race([left, answerOf(request, leave)]);
}

async function answerOf(
  { style: [path, body], stream, tokens, leavesAfter }: Request,
  leave: AbortController,
): Promise<Outcome> {
  // Before an answer has begun only the clock can say when to leave: after the request has been written.
  if (leavesAfter === 0) setImmediate(() => leave.abort());
  try {
    const response = await fetch(`${server.url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'foundation', stream, ...body(tokens) }),
      signal: leave.signal,
    });
    let text = '';
    let pieces = 0;
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece;
      pieces += 1;
      if (pieces === leavesAfter) leave.abort();
    }
    return { status: response.status, text };
  } catch (error) {
    if (leave.signal.aborted) return LEFT;
    throw error;
  }
}

interface Health {
  inflight: object;
  http_inflight: number;
  open_connections: number;
  open_file_descriptors: number;
  resident_models: { id: string }[];
}
const health = async (): Promise<Health> => (await (await fetch(`${server.url}/health`)).json()) as Health;
const quiet = () =>
  until(async () => {
    const now = await health();
    return Object.keys(now.inflight).length === 0 && now.http_inflight === 1;
  });

async function runners(): Promise<number> {
  const children = await readFile(`/proc/${server.process.pid}/task/${server.process.pid}/children`, 'utf8');
  return children.trim().split(' ').length;
}

test(`${REQUESTS} requests leave nothing behind`, { timeout: 300_000 }, async () => {
  const waiting = fc.sample(requests, { numRuns: REQUESTS, seed });
  await send({ style: STYLES[0], stream: false, tokens: 1, leavesAfter: undefined });
  await quiet();
  const before = await health();
  const statuses = new Map<number | 'left', number>();
  const unexpected: string[] = [];
  const worker = async (): Promise<void> => {
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      const { status, text } = await send(next);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      if (status !== 200 && status !== 'left') unexpected.push(`${JSON.stringify(next)} → ${status} ${text}`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  expect(unexpected, server.log()).toEqual([]);
  expect(statuses.get('left')).toBeGreaterThan(REQUESTS / 10);
  await quiet();

  const after = await health();
  expect(after.resident_models).toEqual(before.resident_models);
  expect(await runners()).toBe(1);
  // A client keeps some connections for later; those of the hundreds that left would be many more.
  await until(async () => (await health()).open_connections <= 3 * AT_ONCE);
  const { open_file_descriptors: descriptors, open_connections: connections } = await health();
  expect(descriptors - connections).toBeLessThanOrEqual(before.open_file_descriptors - before.open_connections);
  // Every sequence can be had again.
  const answers = Array.from({ length: SESSIONS }, () =>
    send({ style: STYLES[0], stream: true, tokens: 20, leavesAfter: undefined }),
  );
  expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(Array.from(answers, () => 200));
  expect(server.log()).not.toMatch(/stopped unexpectedly|request failed/);
});
