/** Ollama's routes as the plain functions they are, with a port that only remembers what it was asked. */
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../../core/errors.ts';
import type { LocalModel } from '../../../../core/inference/catalog.ts';
import type { LanguageModel, ModelCall, ModelStreamPart } from '../../../../core/inference/model-port.ts';
import type { Caller } from '../../../../gateway/caller.ts';
import type { GatewayRequest, Reply, Route, Services } from '../../../../gateway/route.ts';
import { completions } from '../../../../gateway/routes/inference/completions.ts';
import { ollamaChat, ollamaGenerate } from '../../../../gateway/routes/inference/ollama-inference.ts';
import { ollamaPs, ollamaTags } from '../../../../gateway/routes/inference/ollama-models.ts';
import { ollamaFaults, parseLines } from '../../../support/ollama-schema.ts';
import { streamOf } from '../../../support/port-events.ts';

const model: LocalModel = {
  kind: 'local',
  id: 'm',
  path: '/m.gguf',
  sizeBytes: 5,
  modifiedAtMs: 0,
  origin: 'folder',
  isBuiltIn: false,
};

const answer: ModelStreamPart[] = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: 'Hi' },
  { type: 'text-end', id: '0' },
  {
    type: 'finish',
    finishReason: { unified: 'stop', raw: undefined },
    usage: {
      inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: undefined },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
  },
];

const OWNER: Caller = { transport: 'loopback', sealed: false, credential: 'none', scope: 'owner' };
const OTHERS: readonly Caller[] = [
  { ...OWNER, page: { origin: 'https://app.example', isGuest: true } },
  { ...OWNER, page: { origin: 'https://listed.example', isGuest: false } },
  { transport: 'lan', sealed: false, credential: 'key', scope: 'master', keyId: 'k' },
  { transport: 'relay', sealed: true, credential: 'device', scope: 'master', keyId: 'k' },
];

/** What these routes need, and nothing more. */
type Needs = Pick<Services, 'inference' | 'catalog' | 'now'>;

interface Fake {
  readonly services: Needs;
  /** What the port was asked, in order. */
  readonly asked: { readonly what: 'answer' | 'count' | 'unload'; readonly id: string; readonly call?: ModelCall }[];
}

function fake(overrides: Partial<Needs> = {}): Fake {
  const asked: Fake['asked'] = [];
  const languageModel = (id: string): LanguageModel => ({
    specificationVersion: 'v4',
    provider: 'postern',
    modelId: id,
    supportedUrls: {},
    doStream: async (call) => {
      asked.push({ what: 'answer', id, call });
      return { stream: streamOf(answer) };
    },
    doGenerate: async (call) => {
      asked.push({ what: 'answer', id, call });
      throw new ServiceError('overloaded', 'Too much.');
    },
  });
  const resolve = async (id: string): Promise<LocalModel> => {
    if (id === model.id || id === `${model.id}:latest`) return model;
    throw new ServiceError('model_not_found', `The model '${id}' is not installed.`);
  };
  const services: Needs = {
    inference: {
      languageModel: async (id) => languageModel(id),
      countPromptTokens: async (id, call) => {
        asked.push({ what: 'count', id, call });
        return 0;
      },
      load: async () => undefined,
      contextLimit: async () => undefined,
      unload: async (id) => void asked.push({ what: 'unload', id: (await resolve(id)).id }),
      status: () => ({
        residents: [
          {
            id: 'm',
            model,
            pid: 1,
            contextTokens: 512,
            limitTokens: 1024,
            sequences: 1,
            memoryBytes: 1,
            unloadsInMs: 60_000,
            keepLoadedMs: 900_000,
          },
        ],
        inflight: new Map(),
        maxCalls: 64,
        runnerCrashes: 0,
      }),
    },
    catalog: {
      list: async () => [model],
      resolve,
      describe: async () => undefined,
      digest: async () => undefined,
    },
    now: () => 1_700_000_000_000,
    ...overrides,
  };
  return { services, asked };
}

async function send(
  route: Route<Needs>,
  body: object,
  { services }: Fake,
  signal = new AbortController().signal,
  caller = OWNER,
): Promise<Reply> {
  return route.handle!({ json: () => body, signal, caller } as GatewayRequest, services);
}

async function textOf({ body }: Reply): Promise<string> {
  let text = '';
  for await (const piece of body as AsyncIterable<string>) text += piece;
  return text;
}

const hello = { model: 'm', messages: [{ role: 'user', content: 'Hello' }] };

test('a client that leaves stops its generation', async () => {
  const port = fake();
  const leave = new AbortController();
  for (const stream of [true, false]) await send(ollamaChat, { ...hello, stream }, port, leave.signal);
  await send(ollamaGenerate, { model: 'm', prompt: 'Hello' }, port, leave.signal);
  await send(ollamaGenerate, { model: 'm' }, port, leave.signal);
  await send(completions, { model: 'm', prompt: 'Hello', stream: true }, port, leave.signal);
  await expect(send(completions, { model: 'm', prompt: 'Hello' }, port, leave.signal)).rejects.toThrow('Too much.');
  expect(port.asked).toHaveLength(6);
  leave.abort();
  expect(port.asked.every((one) => one.call?.abortSignal?.aborted)).toBe(true);
});

test('streams lines unless told not to', async () => {
  const streamed = await send(ollamaChat, hello, fake());
  expect(streamed.headers).toMatchObject({ 'content-type': 'application/x-ndjson' });
  const lines = parseLines(await textOf(streamed));
  expect(lines).toHaveLength(2);
  expect(ollamaFaults('ChatStreamEvent', lines[0])).toEqual([]);
  expect(ollamaFaults('ChatResponse', lines[1])).toEqual([]);
  const { body, headers } = await send(ollamaChat, { ...hello, stream: false }, fake());
  expect(headers?.['content-type']).toBeUndefined();
  expect(ollamaFaults('ChatResponse', body)).toEqual([]);
});

test('a model may be called by its default tag, and is answered by that name', async () => {
  const port = fake();
  const { body } = await send(ollamaChat, { ...hello, model: 'm:latest', stream: false }, port);
  expect(port.asked[0]?.id).toBe('m');
  expect(body).toMatchObject({ model: 'm:latest' });
  await expect(send(ollamaChat, { ...hello, model: 'm:8b' }, port)).rejects.toMatchObject({ code: 'model_not_found' });
});

test('what has no effect is named in a header', async () => {
  const ignoring = { ...hello, keep_alive: '5m', options: { num_gpu: 9 } };
  const name = 'x-postern-ignored';
  expect((await send(ollamaChat, ignoring, fake())).headers).toMatchObject({ [name]: 'options.num_gpu, keep_alive' });
  expect((await send(ollamaChat, hello, fake())).headers).not.toHaveProperty(name);
});

describe('a request that asks nothing', () => {
  test('loads the model and generates nothing', async () => {
    const port = fake();
    const { body } = await send(ollamaGenerate, { model: 'm:latest', keep_alive: -1 }, port);
    expect(body).toMatchObject({ response: '', done: true, done_reason: 'load' });
    expect(port.asked).toMatchObject([{ what: 'count', id: 'm' }]);
  });

  test('or lets go of it, and does not load it for that', async () => {
    const port = fake();
    const { body } = await send(ollamaChat, { model: 'm', messages: [], keep_alive: '0s' }, port);
    expect(body).toMatchObject({ message: { content: '' }, done: true, done_reason: 'unload' });
    expect(port.asked).toEqual([{ what: 'unload', id: 'm' }]);
  });

  test.each(OTHERS)('but not for %j, who is not told that it did: others may use it', async (other) => {
    const port = fake();
    const { signal } = new AbortController();
    const request = { model: 'm', messages: [], keep_alive: 0 };
    const { body, headers } = await send(ollamaChat, request, port, signal, other);
    expect(body).toMatchObject({ message: { content: '' }, done: true, done_reason: 'stop' });
    expect(headers).toMatchObject({ 'x-postern-ignored': 'keep_alive' });
    expect(port.asked).toEqual([]);
  });

  test('still needs a model that exists', async () => {
    for (const keepAlive of [0, '5m']) {
      const request = { model: 'nope', keep_alive: keepAlive };
      await expect(send(ollamaGenerate, request, fake())).rejects.toMatchObject({ code: 'model_not_found' });
    }
  });
});

test('a list does not wait for a model that takes long to look into', async () => {
  const never = new Promise<undefined>(() => undefined);
  const { catalog } = fake().services;
  const port = fake({ catalog: { ...catalog, describe: () => never, digest: async () => 'sha256:known' } });
  for (const route of [ollamaTags, ollamaPs]) {
    const { body } = await send(route, {}, port);
    expect(body).toMatchObject({ models: [{ name: 'm', digest: 'sha256:known', details: { family: '' } }] });
  }
});

test('when a model goes is told to the owner, and to others what would be if they used it now', async () => {
  const port = fake();
  const { signal } = new AbortController();
  const expiresIn = async (caller: Caller) => {
    const { body } = await send(ollamaPs, {}, port, signal, caller);
    const [first] = (body as { models: { expires_at: string }[] }).models;
    return Date.parse(first!.expires_at) - port.services.now();
  };
  expect(await expiresIn(OWNER)).toBe(60_000);
  for (const other of OTHERS) expect(await expiresIn(other)).toBe(900_000);
});

test('nothing runs where nothing is loaded', async () => {
  const port = fake();
  const status = () => ({ residents: [], inflight: new Map(), maxCalls: 64, runnerCrashes: 0 });
  const idle = { ...port.services.inference, status };
  expect((await send(ollamaPs, {}, fake({ inference: idle }))).body).toEqual({ models: [] });
});
