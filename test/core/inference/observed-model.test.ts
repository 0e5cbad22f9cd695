/** Looking on at a model that knows nothing of it, such as a provider's: a class, with private parts. */
import fc from 'fast-check';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import {
  collect,
  type LanguageModel,
  type ModelCall,
  type ModelStreamPart,
} from '../../../core/inference/model-port.ts';
import { observed } from '../../../core/inference/observed-model.ts';
import { portAnswer, streamOf } from '../../support/port-events.ts';
import { runs } from '../../support/sampling.ts';
import { until } from '../../support/wait.ts';

class ProviderModel implements LanguageModel {
  readonly specificationVersion = 'v4';
  readonly modelId = 'm';
  readonly supportedUrls = {};
  readonly #answer: (call: ModelCall) => ReadableStream<ModelStreamPart>;

  constructor(answer: (call: ModelCall) => ReadableStream<ModelStreamPart>) {
    this.#answer = answer;
  }

  get provider(): string {
    return 'far';
  }

  async doStream(call: ModelCall) {
    return { stream: this.#answer(call), request: { body: 'kept' } };
  }

  doGenerate(call: ModelCall) {
    return collect(this.#answer(call));
  }
}

function watch(answer: (call: ModelCall) => ReadableStream<ModelStreamPart>) {
  const seen: unknown[] = [];
  const model = observed(new ProviderModel(answer), () => ({
    onPart: (part) => seen.push(part),
    onAnswer: (whole) => seen.push(whole),
    onFailure: (error) => seen.push({ failure: error }),
  }));
  return { model, seen };
}

async function readAll(stream: ReadableStream<ModelStreamPart>): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

const call: ModelCall = { prompt: [] };
const delta = (text: string): ModelStreamPart => ({ type: 'text-delta', id: '0', delta: text });

test('a stream goes by unchanged, and each part is seen once', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, async ({ parts }) => {
      const { model, seen } = watch(() => streamOf(parts));
      const { stream, request } = await model.doStream(call);
      expect(await readAll(stream)).toEqual(parts);
      expect(request).toEqual({ body: 'kept' });
      expect(seen).toEqual(parts.map((part) => (part.type === 'error' ? { failure: part.error } : part)));
    }),
    runs(100),
  );
});

test('a whole answer is asked for as one, and seen as one', async () => {
  const finish: ModelStreamPart = {
    type: 'finish',
    finishReason: { unified: 'stop', raw: undefined },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: undefined },
      outputTokens: { total: 1, text: 1, reasoning: 0 },
    },
  };
  const { model, seen } = watch(() => streamOf([{ type: 'text-start', id: '0' }, delta('a'), finish]));
  expect([model.provider, model.modelId]).toEqual(['far', 'm']);
  const answer = await model.doGenerate(call);
  expect(answer.content).toEqual([{ type: 'text', text: 'a' }]);
  expect(seen).toEqual([answer]);
});

test('what fails is told, before an answer begins and in the middle of it', async () => {
  const trouble = new Error('the provider is away');
  const refused = watch(() => {
    throw trouble;
  });
  await expect(refused.model.doStream(call)).rejects.toBe(trouble);
  await expect(refused.model.doGenerate(call)).rejects.toBe(trouble);
  expect(refused.seen).toEqual([{ failure: trouble }, { failure: trouble }]);

  const cut = watch(
    () =>
      new ReadableStream({
        pull: (controller) => controller.error(trouble),
        start: (controller) => controller.enqueue(delta('a')),
      }),
  );
  await expect(readAll((await cut.model.doStream(call)).stream)).rejects.toBe(trouble);
  expect(cut.seen).toEqual([delta('a'), { failure: trouble }]);
});

test('a caller that gives up is no failure of the model', async () => {
  const left = new AbortController();
  const { model, seen } = watch(
    ({ abortSignal }) =>
      new ReadableStream({
        start: (controller) => abortSignal!.addEventListener('abort', () => controller.error(abortSignal!.reason)),
      }),
  );
  const { stream } = await model.doStream({ prompt: [], abortSignal: left.signal });
  left.abort();
  await expect(readAll(stream)).rejects.toBe(left.signal.reason);
  expect(seen).toEqual([]);
});

test('a reader that cancels ends the model, and one that rests does not have it run ahead for ever', async () => {
  let written = 0;
  let reason: unknown;
  const { model } = watch(
    () =>
      new ReadableStream<ModelStreamPart>(
        {
          pull: (controller) => controller.enqueue(delta(String((written += 1)))),
          cancel: (given) => void (reason = given),
        },
        { highWaterMark: 0 },
      ),
  );
  const reader = (await model.doStream(call)).stream.getReader();
  await until(() => written >= 1024);
  for (let turn = 0; turn < 10; turn += 1) await nextTurn();
  expect(written).toBe(1024);
  await reader.cancel('enough');
  expect(reason).toBe('enough');
});
