import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SERVICE, type CallOwner } from '../../../core/inference/call-owner.ts';
import {
  collect,
  PROVIDER,
  promptCountPart,
  withGenerationMs,
  type LanguageModel,
  type ModelCall,
  type ModelStreamPart,
} from '../../../core/inference/model-port.ts';
import { ServiceError } from '../../../core/errors.ts';
import { InferenceRecord } from '../../../gateway/request-log/inference-record.ts';
import type { Services } from '../../../gateway/route.ts';
import { portAnswer, streamOf } from '../../support/port-events.ts';
import { runs } from '../../support/sampling.ts';

const call = { prompt: [] };

function modelOf(doStream: LanguageModel['doStream'], generationMs?: number): Services['inference'] {
  const doGenerate: LanguageModel['doGenerate'] = async (options) => {
    const answer = await collect((await doStream(options)).stream);
    return generationMs === undefined ? answer : withGenerationMs(answer, generationMs);
  };
  const model = { specificationVersion: 'v4' as const, provider: PROVIDER, modelId: 'm', supportedUrls: {} };
  return { languageModel: async () => ({ ...model, doStream, doGenerate }) } as unknown as Services['inference'];
}

function createRecord(times: readonly number[] = [], maxTextLength = 0) {
  const clock = [...times];
  const failures: unknown[] = [];
  const record = new InferenceRecord({
    elapsed: () => clock.shift() ?? 0,
    maxTextLength,
    onFailure: (error) => failures.push(error),
  });
  const entry = (isCancelled = false) => record.entry({ startedAt: 100, isCancelled });
  return { record, entry, failures };
}

async function readAll(stream: ReadableStream<ModelStreamPart>): Promise<ModelStreamPart[]> {
  const parts: ModelStreamPart[] = [];
  for await (const part of stream) parts.push(part);
  return parts;
}

const finish = (output: number): ModelStreamPart => ({
  type: 'finish',
  finishReason: { unified: 'stop', raw: undefined },
  usage: {
    inputTokens: { total: 20, noCache: 5, cacheRead: 15, cacheWrite: undefined },
    outputTokens: { total: output, text: output, reasoning: 0 },
  },
});
const delta = (text: string): ModelStreamPart => ({ type: 'text-delta', id: '0', delta: text });

/** What a person would read of it, calls of tools included. */
const saidIn = (parts: readonly ModelStreamPart[]): string =>
  parts
    .map((part) => {
      if (part.type === 'text-delta') return part.delta;
      return part.type === 'tool-call' ? `\n[calls ${part.toolName} ${part.input}]` : '';
    })
    .join('');

test('whatever a model says goes by unchanged, and is counted as its last part counts it', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, async ({ parts, finish: reason }) => {
      const { record, entry, failures } = createRecord([], 1_000_000);
      const watched = await record
        .watch(
          modelOf(async () => ({ stream: streamOf(parts) })),
          SERVICE,
        )
        .languageModel('m');
      expect(await readAll((await watched.doStream(call)).stream)).toEqual(parts);
      const last = parts.at(-1)!;
      if (last.type === 'finish') {
        expect(entry()).toMatchObject({
          model: 'm',
          finishReason: reason.replace('-', '_'),
          inputTokens: last.usage.inputTokens.total,
          outputTokens: last.usage.outputTokens.total,
        });
        expect(failures).toEqual([]);
      } else {
        expect(entry().finishReason).toBe('error');
        expect(failures).toEqual([expect.any(ServiceError)]);
      }
      expect(record.text).toBe(saidIn(parts));
    }),
    runs(500),
  );
});

test('speed is that of the tokens after the first; the first one has its own time', async () => {
  const { record, entry } = createRecord([150, 450]);
  const stream = () => streamOf([promptCountPart(20), delta('a'), delta('b'), delta('c'), finish(4)]);
  const watched = await record
    .watch(
      modelOf(async () => ({ stream: stream() })),
      SERVICE,
    )
    .languageModel('m');
  await readAll((await watched.doStream(call)).stream);
  expect(entry()).toEqual({
    model: 'm',
    requestedModel: 'm',
    finishReason: 'stop',
    inputTokens: 20,
    cachedTokens: 15,
    outputTokens: 4,
    firstTokenMs: 50,
    generationMs: 300,
    tokensPerSecond: 10,
  });
});

test('a whole answer is counted alike, by what its model says of the time that it took', async () => {
  const { record, entry } = createRecord([450], 100);
  const parts = [{ type: 'text-start', id: '0' } as const, delta('a'), delta('b'), finish(4)];
  const inference = record.watch(
    modelOf(async () => ({ stream: streamOf(parts) }), 300),
    SERVICE,
  );
  await (await inference.languageModel('m')).doGenerate(call);
  expect(entry()).toEqual({
    model: 'm',
    requestedModel: 'm',
    finishReason: 'stop',
    inputTokens: 20,
    cachedTokens: 15,
    outputTokens: 4,
    firstTokenMs: 50,
    generationMs: 300,
    tokensPerSecond: 10,
  });
  expect(record.text).toBe('ab');
});

test('a whole answer of a model that tells no times has none', async () => {
  const { record, entry } = createRecord([450]);
  const inference = record.watch(
    modelOf(async () => ({ stream: streamOf([delta('a'), finish(4)]) })),
    SERVICE,
  );
  await (await inference.languageModel('m')).doGenerate(call);
  expect(entry()).toMatchObject({ outputTokens: 4, firstTokenMs: undefined, tokensPerSecond: undefined });
});

test('an answer of one token has no speed', async () => {
  const { record, entry } = createRecord([150, 450]);
  const watched = await record
    .watch(
      modelOf(async () => ({ stream: streamOf([delta('a'), finish(1)]) })),
      SERVICE,
    )
    .languageModel('m');
  await readAll((await watched.doStream(call)).stream);
  expect(entry()).toMatchObject({ outputTokens: 1, tokensPerSecond: undefined });
});

test('several calls of a request add up', async () => {
  const { record, entry } = createRecord([150, 250, 500, 900]);
  const inference = record.watch(
    modelOf(async () => ({ stream: streamOf([delta('a'), finish(5)]) })),
    SERVICE,
  );
  for (let round = 0; round < 2; round += 1) {
    await readAll((await (await inference.languageModel('m')).doStream(call)).stream);
  }
  expect(entry()).toMatchObject({
    inputTokens: 40,
    outputTokens: 10,
    firstTokenMs: 50,
    generationMs: 500,
    tokensPerSecond: 16,
  });
});

test('a client that leaves: what the prompt had is known, what was written is not', async () => {
  const { record, entry } = createRecord();
  let isCancelled = false;
  const endless = new ReadableStream<ModelStreamPart>({
    start: (controller) => controller.enqueue(promptCountPart(7)),
    pull: (controller) => controller.enqueue(delta('a')),
    cancel: () => void (isCancelled = true),
  });
  const watched = await record
    .watch(
      modelOf(async () => ({ stream: endless })),
      SERVICE,
    )
    .languageModel('m');
  const reader = (await watched.doStream(call)).stream.getReader();
  await reader.read();
  await reader.read();
  await reader.cancel();
  expect(isCancelled).toBe(true);
  expect(entry(true)).toMatchObject({ finishReason: 'cancelled', inputTokens: 7, outputTokens: undefined });
});

test('a call that is refused has ended in an error', async () => {
  const refusal = new ServiceError('prompt_too_long', 'too long');
  const { record, entry } = createRecord();
  const watched = await record
    .watch(
      modelOf(() => Promise.reject(refusal)),
      SERVICE,
    )
    .languageModel('m');
  await expect(watched.doStream(call)).rejects.toBe(refusal);
  expect(entry()).toMatchObject({ model: 'm', finishReason: 'error' });
});

test('calls are made in the name of their owner', async () => {
  const owners: unknown[] = [];
  const inference = {
    languageModel: async (_id: string, owner: CallOwner) => {
      owners.push(owner);
      return { modelId: 'm' };
    },
    countPromptTokens: async (_id: string, _call: ModelCall, owner: CallOwner) => owners.push(owner),
  } as unknown as Services['inference'];
  const owner = { name: 'key 7', isGuest: false };
  const watched = createRecord().record.watch(inference, owner);
  await watched.languageModel('m');
  await watched.countPromptTokens('m', call);
  expect(owners).toEqual([owner, owner]);
});

test('where no model is asked, nothing is said of any', () => {
  expect(Object.values(createRecord().entry(true)).filter((value) => value !== undefined)).toEqual([]);
});
