/**
 * Work for each byte before it is known whether the bytes are worth it: the worst bodies that we know, each as long as
 * its route takes, to every route that reads one.
 */
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../gateway/routes.ts';
import type { Route } from '../../gateway/route.ts';
import { isThorough, seed } from '../support/sampling.ts';
import { startWatchedServer, type WatchedServer } from '../support/watched-server.ts';
import { bodiesOfMany, worstBodies, type WorstBody } from '../support/worst-bodies.ts';

/** The goal is 50 ms; a slow or a busy machine takes longer for the same. */
const LONGEST_TURN_MS = 150;
/** Of one body of 32 MiB and its value; a process without any work has some 100 MiB. */
const MOST_MEMORY_BYTES = 700 * 1024 * 1024;

/** What a route reads first. */
const FIELDS: Readonly<Record<string, string>> = {
  '/completions': 'prompt',
  '/generate': 'prompt',
  '/responses': 'input',
};

let server: WatchedServer;
beforeAll(async () => {
  server = await startWatchedServer();
  // The model is loaded beforehand: what follows is about bodies.
  await send(
    '/chat/completions',
    Buffer.from('{"model":"foundation","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}'),
  );
});
afterAll(() => server?.stop());

interface Answer {
  readonly status: number;
  readonly body: string;
}

function send(path: string, body: Buffer, method = 'POST'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      {
        host: '127.0.0.1',
        port: server.port,
        path,
        method,
        headers: { 'content-type': 'application/json', 'content-length': body.length },
      },
      (response) => {
        text(response).then((words) => resolve({ status: response.statusCode ?? 0, body: words }), reject);
      },
    );
    asked.on('error', reject);
    asked.end(body);
  });
}

/** Asks for its health again and again, until it is told that it is enough. @returns how often it was answered */
async function others(isOver: () => boolean): Promise<number> {
  let answered = 0;
  while (!isOver()) {
    const response = await fetch(`${server.url}/health`);
    expect(response.status).toBe(200);
    await response.arrayBuffer();
    answered += 1;
  }
  return answered;
}

async function attack(route: Route, body: Buffer): Promise<Answer> {
  let isOver = false;
  const path = route.path.replaceAll(/:\w+|\*/g, 'x');
  const asking = others(() => isOver);
  const answer = await send(path, body, route.method).finally(() => (isOver = true));
  expect(await asking, 'others are answered meanwhile').toBeGreaterThan(0);
  return answer;
}

const readers = routes.filter(
  ({ handle, method, path }) =>
    handle !== undefined && (method === 'POST' || method === 'PUT') && path !== '/admin/shutdown',
);

/** What Ollama does and Postern does not, whatever the body is. */
const REFUSED: ReadonlySet<string> = new Set(['/create', '/push']);

/** All of them in a thorough run; else each route gets three, and the one that serves most all. */
function bodiesFor(route: Route): readonly WorstBody[] {
  const many = bodiesOfMany[route.path] ?? [];
  if (isThorough || route.path === '/chat/completions') return [...worstBodies, ...many];
  const [some = []] = fc.sample(fc.shuffledSubarray([...worstBodies], { minLength: 3, maxLength: 3 }), {
    numRuns: 1,
    seed: seed + route.path.length,
  });
  return [...some, ...many];
}

describe('A body that costs more than its bytes does not hold up the service', () => {
  for (const route of readers) {
    for (const worst of bodiesFor(route)) {
      test(`${route.method} ${route.path}: ${worst.name}`, async () => {
        const body = worst.make(FIELDS[route.path] ?? 'messages', route.maxBodyBytes);
        await server.observe();
        const { status, body: words } = await attack(route, body);
        const { longestMs, peakBytes } = await server.observe();
        if (REFUSED.has(route.path)) expect(status).toBe(501);
        else expect(status, words.slice(0, 500)).toBeLessThan(500);
        expect(words.length, 'an error says what is wrong in few words').toBeLessThan(20_000);
        expect(longestMs, 'the longest piece of work on its thread').toBeLessThan(LONGEST_TURN_MS);
        expect(peakBytes, 'memory').toBeLessThan(MOST_MEMORY_BYTES);
      });
    }
  }

  test('a body that says it is gzipped is not unpacked', async () => {
    const answer = await send('/chat/completions', Buffer.from('1f8b08000000000000ff', 'hex'));
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('not valid JSON');
  });

  test('and then it answers as if nothing had been', async () => {
    const question = { model: 'foundation', messages: [{ role: 'user', content: 'What is the capital of France?' }] };
    const answer = await send('/chat/completions', Buffer.from(JSON.stringify(question)));
    expect(answer.body).toContain('The capital of France is Paris.');
  });
});

describe('Honest work of the largest size is not refused for its shape', () => {
  test('three hundred long messages in 30 MiB are told that they are too long for the model, and nothing else', async () => {
    const messages = Array.from({ length: 300 }, (_, at) => ({
      role: at % 2 === 0 ? 'user' : 'assistant',
      content: 'word '.repeat(20_000),
    }));
    const answer = await send('/chat/completions', Buffer.from(JSON.stringify({ model: 'foundation', messages })));
    expect(answer.status).toBe(400);
    expect(answer.body).toContain('context window');
  });

  test('two thousand tools, of a hundred values and keys each, are read', async () => {
    const tools = Array.from({ length: 2000 }, (_, at) => ({
      type: 'function',
      function: {
        name: `tool_${at}`,
        parameters: {
          type: 'object',
          properties: Object.fromEntries(
            Array.from({ length: 17 }, (__, n) => [`p${n}`, { type: 'string', description: 'one of them' }]),
          ),
        },
      },
    }));
    const asked = { model: 'foundation', messages: [{ role: 'user', content: 'hi' }], tools };
    const answer = await send('/chat/completions', Buffer.from(JSON.stringify(asked)));
    expect(answer.body).toContain('context window');
  });
});
