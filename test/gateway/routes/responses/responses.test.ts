import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  collect,
  type LanguageModel,
  type ModelCall,
  type ModelStreamPart,
} from '../../../../core/inference/model-port.ts';
import { createResponseStore } from '../../../../core/responses/response-store.ts';
import { openDatabase, type Database } from '../../../../storage/database.ts';
import type { Caller } from '../../../../gateway/caller.ts';
import { RequestError } from '../../../../gateway/errors.ts';
import type { Reply, Route } from '../../../../gateway/route.ts';
import { createBackgroundResponses } from '../../../../gateway/routes/responses/background.ts';
import { createResponse } from '../../../../gateway/routes/responses/create.ts';
import type { ResponseNeeds } from '../../../../gateway/routes/responses/prepare.ts';
import { deleteResponse, getResponse, listInputItems } from '../../../../gateway/routes/responses/stored.ts';
import { validEvents, type Response } from '../../../support/openresponses.ts';
import { streamOf } from '../../../support/port-events.ts';

let home: string;
let database: Database;
let services: ResponseNeeds;
let calls: ModelCall[];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};
const says = (text: string): ModelStreamPart[] => [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: text },
  { type: 'text-end', id: '0' },
  { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage },
];

beforeAll(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-responses-'));
  database = openDatabase(home);
});
afterAll(() => {
  database.close();
  rmSync(home, { recursive: true, force: true });
});

beforeEach(() => {
  calls = [];
  const model: LanguageModel = {
    specificationVersion: 'v4',
    provider: 'test',
    modelId: 'm',
    supportedUrls: {},
    doStream: (call) => {
      calls.push(call);
      return Promise.resolve({ stream: streamOf(says('Hi.')) });
    },
    doGenerate: (call) => {
      calls.push(call);
      return collect(streamOf(says('Hi.')));
    },
  };
  services = {
    inference: {
      languageModel: () => Promise.resolve(model),
      countPromptTokens: () => Promise.reject(new Error('nobody asked for this')),
      status: () => ({ residents: [], inflight: new Map(), maxCalls: 1, runnerCrashes: 0 }),
    },
    responses: createResponseStore({ database, now: () => 1_700_000_000_000 }),
    storage: { trouble: () => undefined, note: () => undefined },
    backgroundResponses: createBackgroundResponses(),
    now: () => 1_700_000_000_000,
  };
});

const caller = (scope: Caller['scope']): Caller => ({ transport: 'lan', sealed: false, credential: 'key', scope });

interface SentRequest {
  readonly as?: Caller['scope'];
  readonly body?: object;
  readonly id?: string;
  readonly query?: string;
  readonly signal?: AbortSignal;
}

async function ask(
  route: Route<ResponseNeeds>,
  { as = 'owner', body, id, query = '', signal }: SentRequest,
): Promise<Reply> {
  const request = {
    caller: caller(as),
    view: 'full' as const,
    agents: 'none' as const,
    params: id === undefined ? {} : { id },
    query: new URLSearchParams(query),
    headers: {},
    json: () => ({ model: 'm', input: 'Hello', ...body }),
    bodyBytes: JSON.stringify(body ?? {}).length,
    stream: (async function* () {})(),
    clientKey: '',
    signal: signal ?? new AbortController().signal,
    detach: () => expect.unreachable(),
  };
  return route.handle!(request, services);
}

async function create(asked: SentRequest = {}): Promise<Response> {
  return (await ask(createResponse, asked)).body as unknown as Response;
}

const notFound = expect.objectContaining({ code: 'not_found' });
const noPrevious = expect.objectContaining({ code: 'previous_response_not_found' });

describe('one caller has nothing of another’s', () => {
  const others = ['master', '0xabc', '0xabd', 'anonymous'] as const;

  test('not to fetch, list, delete, go on from or refer to', async () => {
    const { id, output } = await create({ as: 'owner' });
    const item = { type: 'item_reference', id: output[0]!.id };
    for (const as of others) {
      await expect(ask(getResponse, { as, id })).rejects.toThrow(notFound);
      await expect(ask(listInputItems, { as, id })).rejects.toThrow(notFound);
      await expect(ask(deleteResponse, { as, id })).rejects.toThrow(notFound);
      await expect(create({ as, body: { previous_response_id: id } })).rejects.toThrow(noPrevious);
      await expect(create({ as, body: { input: [item] } })).rejects.toThrow(notFound);
    }
    expect(calls).toHaveLength(1);
    expect((await ask(getResponse, { id })).body).toMatchObject({ id });
    await create({ body: { input: [item] } });
    expect(calls[1]?.prompt).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'Hi.' }] }]);
  });

  test('an unknown response looks the same as another’s', async () => {
    const { id } = await create({ as: 'owner' });
    const refusals = await Promise.all(
      [id, 'resp_000000000000000000000000', 'x'].map((one) =>
        ask(getResponse, { as: '0xabc', id: one }).catch((error: unknown) => String(error)),
      ),
    );
    expect(new Set(refusals).size).toBe(1);
  });
});

test('items of other conversations can be referred to as long as those have 4 MiB together', async () => {
  const mib = 'x'.repeat(1024 * 1024);
  const stored = await Promise.all(Array.from({ length: 4 }, () => create({ body: { input: mib } })));
  const items = stored.map(({ output }) => ({ type: 'item_reference', id: output[0]!.id }));
  const [first = {}, ...others] = items;
  expect((await create({ body: { input: others } })).output).toHaveLength(1);
  await expect(create({ body: { input: [first, ...others] } })).rejects.toThrow(
    expect.objectContaining({ code: 'bad_request', param: 'input' }),
  );
});

describe('what is stored', () => {
  test('a conversation of up to 4 MiB; what goes beyond is answered, not stored, and says so', async () => {
    const half = 'x'.repeat(2 * 1024 * 1024 - 10_000);
    const first = await create({ body: { input: half } });
    const second = await create({ body: { input: half, previous_response_id: first.id } });
    expect(second).toMatchObject({ store: true });
    const third = await ask(createResponse, { body: { input: half, previous_response_id: second.id } });
    expect(third).toMatchObject({ headers: { 'x-postern-ignored': 'store' }, body: { store: false } });
    await expect(ask(getResponse, { id: (third.body as unknown as Response).id })).rejects.toThrow(notFound);
    // It was given all that came before, and one that is short still goes on from there.
    expect(calls.at(-1)?.prompt).toHaveLength(5);
    expect(await create({ body: { previous_response_id: second.id } })).toMatchObject({ store: true });
  });

  test('the answer, streamed or not, with all that its conversation has', async () => {
    const first = await create({ body: { input: 'one' } });
    const reply = await ask(createResponse, { body: { input: 'two', previous_response_id: first.id, stream: true } });
    let text = '';
    for await (const piece of reply.body as AsyncIterable<string>) text += piece;
    const last = validEvents(text).at(-1)?.response;
    expect((await ask(getResponse, { id: last!.id })).body).toEqual(last);
    await create({ body: { input: 'three', previous_response_id: last!.id } });
    const said = (prompt: ModelCall['prompt']) =>
      prompt.map((message) => (message.content as { text: string }[]).map((part) => part.text).join());
    expect(calls.map((call) => said(call.prompt))).toEqual([
      ['one'],
      ['one', 'Hi.', 'two'],
      ['one', 'Hi.', 'two', 'Hi.', 'three'],
    ]);
  });

  test('not what the client asked to be forgotten, nor what it did not wait for', async () => {
    const forgotten = await create({ body: { store: false } });
    const gone = new AbortController();
    gone.abort();
    const abandoned = await create({ signal: gone.signal });
    for (const { id } of [forgotten, abandoned]) await expect(ask(getResponse, { id })).rejects.toThrow(notFound);
    expect(calls.map((call) => call.abortSignal?.aborted)).toEqual([false, true]);
  });
});

describe('input items', () => {
  const list = async (id: string, query: string) =>
    (await ask(listInputItems, { id, query })).body as unknown as {
      data: { id: string; content: { text: string }[] }[];
      first_id: string | null;
      last_id: string | null;
      has_more: boolean;
    };
  const input = Array.from({ length: 25 }, (_, index) => ({ role: 'user', content: `m${index}` }));
  const textsOf = (items: readonly { content: { text: string }[] }[]) => items.map((item) => item.content[0]?.text);

  test('newest first, twenty at a time, or as asked for', async () => {
    const { id } = await create({ body: { input } });
    const page = await list(id, '');
    expect(textsOf(page.data)).toEqual(
      input
        .toReversed()
        .slice(0, 20)
        .map((one) => one.content),
    );
    expect(page).toMatchObject({ first_id: page.data[0]?.id, last_id: page.data[19]?.id, has_more: true });
    const rest = await list(id, `after=${page.last_id}`);
    expect(textsOf(rest.data)).toEqual(['m4', 'm3', 'm2', 'm1', 'm0']);
    expect(rest.has_more).toBe(false);
    expect(textsOf((await list(id, 'order=asc&limit=2')).data)).toEqual(['m0', 'm1']);
  });

  test.each(['limit=0', 'limit=101', 'limit=x', 'order=sideways', 'after=msg_nope'])('%s is refused', async (query) => {
    const { id } = await create();
    const param = query.split('=')[0];
    await expect(list(id, query)).rejects.toThrow(expect.objectContaining({ code: 'bad_request', param }));
  });
});

async function textOf({ body }: Reply): Promise<string> {
  let text = '';
  for await (const piece of body as AsyncIterable<string>) text += piece;
  return text;
}

describe('a stored response is streamed again', () => {
  test('by the very events that it was streamed by', async () => {
    const text = await textOf(await ask(createResponse, { body: { stream: true } }));
    const id = validEvents(text).at(-1)!.response!.id;
    const again = await textOf(await ask(getResponse, { id, query: 'stream=true' }));
    expect(validEvents(again)).toEqual(validEvents(text));
    const after = await textOf(await ask(getResponse, { id, query: 'stream=true&starting_after=3' }));
    expect(again.endsWith(after)).toBe(true);
    expect(after).toMatch(/^event: .*\ndata: .*"sequence_number":4/);
  });

  test('by as few events as there can be where it was given whole', async () => {
    const { id } = await create();
    const events = validEvents(await textOf(await ask(getResponse, { id, query: 'stream=true' })));
    expect(events.filter(({ type }) => type === 'response.output_text.delta')).toMatchObject([{ delta: 'Hi.' }]);
    expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { id } });
  });

  test.each(['stream=yes', 'stream=true&starting_after=-1', 'stream=true&starting_after=x'])(
    '%s is refused',
    async (query) => {
      const { id } = await create();
      await expect(ask(getResponse, { id, query })).rejects.toThrow(RequestError);
    },
  );
});
