/** Two callers of one service, whoever they are, and all that they share: whether one can learn of the other by it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { setSettings } from '../support/access-keys.ts';
import { createCallers, type Answer, type TestCaller } from '../support/callers.ts';
import { endless } from '../support/request-log.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { seed } from '../support/sampling.ts';
import { until } from '../support/wait.ts';
import { STYLES, tokensTold } from '../support/wire-styles.ts';

let home: string;
let server: TestServer;
let callers: readonly TestCaller[];
let owner: TestCaller;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-sharing-'));
  // Room for what everybody said, so that nothing is hidden by being gone.
  await setSettings(home, { 'inference.concurrentSessions': 32 });
  server = await startServer({ home });
  callers = await createCallers(server);
  owner = callers[0]!;
});
afterAll(async () => {
  await server?.stop();
  await rm(home, { recursive: true, force: true });
});

/** Every caller with every other one. */
const pairs = (): (readonly [victim: TestCaller, attacker: TestCaller])[] =>
  callers.flatMap((victim) => callers.filter((other) => other !== victim).map((other) => [victim, other] as const));

let drawn = seed;
function draw(below: number): number {
  drawn = (Math.imul(drawn, 1_103_515_245) + 12_345) & 0x7fffffff;
  return (drawn >> 8) % below;
}

/** What nobody has said before, and what begins like nothing that was. */
function newPrompt(): string {
  const secret = String(100_000_000 + draw(900_000_000));
  return `${secret} is the number of my account. Whoever asks you for it, tell them that you do not know.`;
}

function asked(style: string, said: string): { readonly path: string; readonly body: object } {
  const messages = [{ role: 'user', content: said }];
  const { path } = STYLES[style]!;
  const limit = style.startsWith('Ollama') ? { options: { num_predict: 1 }, stream: false } : { max_tokens: 1 };
  const prompts: Record<string, object> = {
    'OpenAI completions': { prompt: said, ...limit },
    'Open Responses': { input: said, store: false, max_output_tokens: 16, temperature: 0 },
    'Ollama generate': { prompt: said, ...limit },
  };
  return { path, body: { model: 'foundation', ...(prompts[style] ?? { messages, ...limit }) } };
}

async function ask(caller: TestCaller, style: string, said: string): Promise<Answer> {
  const { path, body } = asked(style, said);
  const answer = await caller.ask('POST', path, body);
  if (answer.status !== 200) throw new Error(`${caller.name}: ${answer.status} ${answer.text}`);
  return answer;
}

/** How much of the prompt was there already, as the caller is told. */
async function cachedTokens(caller: TestCaller, said: string): Promise<number> {
  const { text } = await ask(caller, 'OpenAI chat', said);
  return tokensTold(text, STYLES['OpenAI chat']!)['cached_tokens']!;
}

/** Every conversation begins with so much of the model's template. */
const TEMPLATE_TOKENS = 8;

/**
 * All that an answer says but for ids, times, the model's own words, and whether those came to an end of their own: the
 * guess and its control are different questions.
 */
function facts({ status, headers, text }: Answer): string {
  const isHidden = (name: string): boolean =>
    /^(id|created|.*_at|.*_duration|content|text|response|output|(finish|done|stop)_reason)$/.test(name);
  const told: unknown = JSON.parse(text, (name, value: unknown) => {
    if (isHidden(name)) return undefined;
    if (!/^cache(d_tokens|_read_input_tokens)$/.test(name)) return value;
    return typeof value === 'number' && value <= TEMPLATE_TOKENS ? 'only the template' : value;
  });
  const kept = Object.entries(headers).filter(([name]) => !/^(date|.*request-id|content-length)$/.test(name));
  // What Anthropic's style calls input tokens are those that were not there before.
  return JSON.stringify([status, kept, told]).replace(/"(input|output|total)_tokens":\d+/g, '');
}

describe('a caller that guesses what another one said, by what the model has evaluated before', () => {
  test('is told by no field whether somebody else said it or nobody, in no style', async () => {
    const told: string[] = [];
    for (const [at, [victim, attacker]] of pairs().entries()) {
      const style = Object.keys(STYLES)[at % Object.keys(STYLES).length]!;
      const said = newPrompt();
      await ask(victim, style, said);
      const [guessed, control] = [await ask(attacker, style, said), await ask(attacker, style, newPrompt())];
      if (facts(guessed) !== facts(control)) told.push(`${attacker.name} of ${victim.name}, ${style}`);
    }
    expect(told).toEqual([]);
  });

  test('does not find the one in twenty that the owner says again and again', async () => {
    const found: string[] = [];
    for (const attacker of callers.slice(1)) {
      const guesses = Array.from({ length: 20 }, newPrompt);
      const secret = guesses[draw(20)]!;
      for (const guess of guesses) {
        await cachedTokens(owner, secret);
        const cached = await cachedTokens(attacker, guess);
        // Guesses have the template in common, and perhaps a digit or two.
        if (cached > 2 * TEMPLATE_TOKENS)
          found.push(`${attacker.name}: ${cached} tokens of ${guess === secret ? 'it' : 'another'}`);
      }
    }
    expect(found).toEqual([]);
  });

  test('finds what it said itself, so that nobody pays for the parting but with others', async () => {
    for (const caller of callers) {
      const said = newPrompt();
      await ask(caller, 'OpenAI chat', said);
      expect(await cachedTokens(caller, said)).toBeGreaterThan(20);
    }
  });

  test('sees no sooner first token for it than for what nobody said', async () => {
    const attacker = callers.find(({ name }) => name.startsWith("an agent's"))!;
    const long = (said: string): string => `${said} ${'It was written down and put away. '.repeat(100)}`;
    const timeOf = async (said: string): Promise<number> => {
      const startedAt = performance.now();
      await ask(attacker, 'OpenAI chat', long(said));
      return performance.now() - startedAt;
    };
    const [theirs, nobodys, own]: number[][] = [[], [], []];
    for (let sample = 0; sample < 7; sample += 1) {
      const [said, unsaid] = [newPrompt(), newPrompt()];
      await ask(owner, 'OpenAI chat', long(said));
      // In turns, so that whatever else the machine does strikes all alike.
      nobodys!.push(await timeOf(unsaid));
      theirs!.push(await timeOf(said));
      own!.push(await timeOf(said));
    }
    // What there is to be seen where tokens are found again, so that a test that sees nothing means something.
    expect(median(own!)).toBeLessThan(median(nobodys!) / 2);
    expect(median(theirs!)).toBeGreaterThan(median(nobodys!) / 1.5);
  });
});

describe('a caller that knows the id of a response that another one stored', () => {
  /** Everything that can be done with one, and what is answered but for the id itself. */
  const uses: Readonly<Record<string, (caller: TestCaller, id: string) => Promise<Answer>>> = {
    read: (caller, id) => caller.ask('GET', `/v1/responses/${id}`),
    'list what it was asked': (caller, id) => caller.ask('GET', `/v1/responses/${id}/input_items`),
    'go on from it': (caller, id) => caller.ask('POST', '/v1/responses', { ...short, previous_response_id: id }),
    'refer to its items': (caller, id) =>
      caller.ask('POST', '/v1/responses', {
        ...short,
        input: [{ type: 'item_reference', id: id.replace(/^resp_/, 'msg_') }, ...short.input],
      }),
    delete: (caller, id) => caller.ask('DELETE', `/v1/responses/${id}`),
  };
  const short = {
    model: 'foundation',
    input: [{ type: 'message', role: 'user', content: 'Hello' }],
    max_output_tokens: 16,
  };
  const outcome = (id: string, { status, headers, text }: Answer) =>
    [status, headers['content-type'], text.replaceAll(id, '…').replaceAll(id.replace(/^resp_/, 'msg_'), '…')].join(' ');

  test('does nothing with it: for others it is one that never was', async () => {
    const told: string[] = [];
    const made = new Map<TestCaller, string>();
    for (const caller of callers) {
      const { text } = await caller.ask('POST', '/v1/responses', short);
      made.set(caller, (JSON.parse(text) as { id: string }).id);
    }
    for (const [victim, attacker] of pairs()) {
      const id = made.get(victim)!;
      const never = id.replace(/^(resp_.*)(.{6})$/, '$1aaaaaa');
      for (const [use, run] of Object.entries(uses)) {
        const [theirs, nobodys] = [await run(attacker, id), await run(attacker, never)];
        const isSame = outcome(id, theirs) === outcome(never, nobodys);
        if (!isSame || theirs.status < 400) told.push(`${attacker.name} of ${victim.name}: ${use}, ${theirs.status}`);
      }
    }
    expect(told).toEqual([]);
    for (const [caller, id] of made)
      expect([caller.name, (await uses['read']!(caller, id)).status]).toEqual([caller.name, 200]);
  });
});

describe('a caller that wants the model for itself', () => {
  const hello = { model: 'foundation', messages: [{ role: 'user', content: 'Hello' }], max_tokens: 1 };
  interface Health {
    readonly loaded: readonly string[];
    readonly inflight: Readonly<Record<string, { readonly running: number; readonly queued: number }>>;
  }
  const health = async () => JSON.parse((await owner.ask('GET', '/health')).text) as Health;

  test('does not unload it by keep_alive, unless it is the owner', async () => {
    for (const caller of [...callers.slice(1), owner]) {
      await owner.ask('POST', '/v1/chat/completions', hello);
      const { headers } = await caller.ask('POST', '/api/generate', { model: 'foundation', keep_alive: 0 });
      const expected = caller === owner ? [undefined, []] : ['keep_alive', ['foundation']];
      expect([caller.name, headers['x-postern-ignored'], (await health()).loaded]).toEqual([caller.name, ...expected]);
    }
  });

  test('fills no queue for others: two keys with all the requests that they may have, and the owner still gets in', async () => {
    const leave = new AbortController();
    const { signal } = leave;
    const body = JSON.stringify({ ...endless, model: 'foundation', stream: true });
    void fetch(`${server.url}/v1/chat/completions`, { method: 'POST', body, signal }).catch(() => undefined);
    await until(async () => (await health()).inflight['foundation']?.running === 1);
    const [one, two] = callers.filter(({ name }) => name.includes('master key'));
    const filling = [one!, two!].flatMap((key) =>
      Array.from({ length: 16 }, () => key.ask('POST', '/v1/chat/completions', hello)),
    );
    await until(async () => (await health()).inflight['foundation']?.queued === 32);
    const owners = owner.ask('POST', '/v1/chat/completions', hello);
    // One of theirs has to go for it.
    const refused = await Promise.race([...filling, owners]);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    leave.abort();
    expect((await owners).status).toBe(200);
    const statuses = (await Promise.all(filling)).map(({ status }) => status);
    expect(statuses.filter((status) => status !== 200)).toEqual([503]);
  });
});

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
