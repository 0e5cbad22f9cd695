import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { promptCountPart, type ModelStreamPart } from '../../../../core/inference/model-port.ts';
import {
  encodeOllamaResponse,
  encodeOllamaStream,
  encodeResidency,
  type OllamaEnvelope,
  type OllamaRoute,
} from '../../../../gateway/wire/ollama/response.ts';
import { ollamaFaults, parseLines } from '../../../support/ollama-schema.ts';
import { portAnswer, streamOf, type PortAnswer } from '../../../support/port-events.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/ollama/answers/', import.meta.url);
const START = 1_795_238_131_000;

/** A clock of which each look takes a millisecond. */
function envelope(route: OllamaRoute): OllamaEnvelope {
  let elapsed = 0;
  const clock = { now: () => START + elapsed / 1e6, elapsed: () => (elapsed += 1_000_000) };
  return { route, model: 'foundation', clock, loadDuration: 250_000 };
}

async function streamText(route: OllamaRoute, parts: readonly ModelStreamPart[]): Promise<string> {
  let text = '';
  for await (const piece of encodeOllamaStream(envelope(route), streamOf(parts))) text += piece;
  return text;
}

test.each(readdirSync(golden))('golden: %s', async (name) => {
  const { route, parts, stream, body } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
    route: OllamaRoute;
    parts: ModelStreamPart[];
    stream: object[];
    body?: object;
  };
  expect(parseLines(await streamText(route, parts))).toEqual(stream);
  const answer = encodeOllamaResponse(envelope(route), streamOf(parts));
  if (body === undefined) await expect(answer).rejects.toBeDefined();
  else expect(await answer).toEqual(body);
});

test('the prompt is read until the first word comes, however much is announced before it', async () => {
  let elapsed = 0;
  const clock = { now: () => START, elapsed: () => elapsed };
  async function* parts(): AsyncGenerator<ModelStreamPart> {
    yield { type: 'stream-start', warnings: [] };
    yield promptCountPart(9);
    elapsed = 5_000_000;
    yield { type: 'text-start', id: '0' };
    yield { type: 'text-delta', id: '0', delta: 'Hi' };
    elapsed = 7_000_000;
    yield { type: 'finish', finishReason: { unified: 'stop', raw: undefined }, usage: NO_USAGE };
  }
  const answer = await encodeOllamaResponse({ route: 'chat', model: 'm', clock, loadDuration: 1_000_000 }, parts());
  expect(answer).toMatchObject({ prompt_eval_duration: 4_000_000, eval_duration: 2_000_000 });
});

const NO_USAGE = {
  inputTokens: { total: 9, noCache: 9, cacheRead: 0, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

interface Line {
  message?: { content: string; thinking?: string; tool_calls?: { id: string; function: object }[] };
  response?: string;
  thinking?: string;
  done: boolean;
  done_reason?: string;
  total_duration: number;
  load_duration: number;
  prompt_eval_duration: number;
  eval_duration: number;
  error?: string;
}

const textOf = (one: Line) => one.message?.content ?? one.response ?? '';
const thinkingOf = (one: Line) => one.message?.thinking ?? one.thinking ?? '';

function expectSays(lines: readonly Line[], answer: PortAnswer, route: OllamaRoute): void {
  expect(lines.map(textOf).join('')).toBe(answer.text);
  expect(lines.map(thinkingOf).join('')).toBe(answer.reasoning);
  if (route === 'generate') return;
  const calls = lines.flatMap((one) => one.message?.tool_calls ?? []);
  expect(calls).toEqual(
    answer.calls.map(({ id, name, input }, index) => ({
      id,
      function: { index, name, arguments: JSON.parse(input) as object },
    })),
  );
}

/** The parts of the measured time are whole, none is negative, and together they are the whole. */
function expectTimes(last: Line): void {
  const parts = [last.load_duration, last.prompt_eval_duration, last.eval_duration];
  expect(parts.every((part) => Number.isInteger(part) && part >= 0)).toBe(true);
  expect(parts.reduce((sum, part) => sum + part)).toBe(last.total_duration);
}

const routes = fc.constantFrom<OllamaRoute[]>('chat', 'generate');

test('any answer of the port encodes to lines by the published schema that say the same', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, routes, async (answer, route) => {
      const text = await streamText(route, answer.parts);
      expect(text.endsWith('\n')).toBe(true);
      const lines = parseLines(text) as unknown as Line[];
      const [last, ...others] = lines.toReversed();
      const [event, whole] =
        route === 'chat' ? ['ChatStreamEvent', 'ChatResponse'] : ['GenerateStreamEvent', 'GenerateResponse'];
      for (const one of others) {
        expect(ollamaFaults(event, one)).toEqual([]);
        expect(one.done).toBe(false);
      }
      expectSays(lines, answer, route);
      if (answer.finish === 'error') {
        expect(ollamaFaults('ErrorResponse', last)).toEqual([]);
        expect(last!.error).toContain('stopped unexpectedly');
        return;
      }
      expect(ollamaFaults(whole, last)).toEqual([]);
      expect(last!.done).toBe(true);
      expect(last!.done_reason).toBe(answer.finish === 'length' ? 'length' : 'stop');
      expectTimes(last!);
    }),
    runs(2000),
  );
});

test('the whole answer says what its stream says', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, routes, async (answer, route) => {
      const whole = encodeOllamaResponse(envelope(route), streamOf(answer.parts));
      if (answer.finish === 'error') {
        await expect(whole).rejects.toMatchObject({ code: 'engine_failed' });
        return;
      }
      const body = (await whole) as Line;
      expect(ollamaFaults(route === 'chat' ? 'ChatResponse' : 'GenerateResponse', body)).toEqual([]);
      expectSays([body], answer, route);
      expectTimes(body);
    }),
    runs(1000),
  );
});

describe('what ends a stream', () => {
  const start: ModelStreamPart = { type: 'stream-start', warnings: [] };

  test('a port that stops without an end is an error, in either form', async () => {
    expect(parseLines(await streamText('chat', [start]))).toEqual([
      { error: 'The model stopped before its answer was complete.' },
    ]);
    await expect(encodeOllamaResponse(envelope('chat'), streamOf([start]))).rejects.toMatchObject({
      code: 'engine_failed',
    });
  });

  test('an error of our own says nothing of its cause', async () => {
    const broken: ModelStreamPart = { type: 'error', error: new TypeError('the prompt was "secret"') };
    const text = await streamText('generate', [start, broken]);
    expect(text).not.toContain('secret');
    expect(ollamaFaults('ErrorResponse', parseLines(text)[0])).toEqual([]);
  });

  test.each(['[1]', '"x"', '{"a":', '7'])(
    'arguments such as %s, which this style cannot carry, are an error',
    async (input) => {
      const call: ModelStreamPart = { type: 'tool-call', toolCallId: 'a', toolName: 'f', input };
      expect(parseLines(await streamText('chat', [start, call])).at(-1)).toEqual({
        error: 'The model called a tool with arguments that are not a JSON object.',
      });
    },
  );
});

test('loading and letting go are answered by the published schema', () => {
  const load = encodeResidency(envelope('chat'), 'load');
  expect(ollamaFaults('ChatResponse', load)).toEqual([]);
  expect(load).toMatchObject({ message: { role: 'assistant', content: '' }, done: true, done_reason: 'load' });
  const unload = encodeResidency(envelope('generate'), 'unload');
  expect(ollamaFaults('GenerateResponse', unload)).toEqual([]);
  expect(unload).toMatchObject({ response: '', done: true, done_reason: 'unload' });
});
