import { existsSync, readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import type { Response as OpenAIResponse, ResponseStreamEvent } from 'openai/resources/responses/responses';
import { accumulateResponse } from 'openai/lib/responses/ResponseAccumulator';
import { describe, expect, test } from 'vitest';
import { collect, type ModelStreamPart } from '../../../../core/inference/model-port.ts';
import { encodeResponse, type ResponseResource } from '../../../../gateway/wire/responses/resource.ts';
import { encodeResponseStream } from '../../../../gateway/wire/responses/stream.ts';
import {
  expectValidResponse,
  validEvents,
  type Item,
  type Response,
  type StreamEvent,
} from '../../../support/openresponses.ts';
import { portAnswer, streamOf, type PortAnswer } from '../../../support/port-events.ts';
import { COMPLETED_AT, envelopeOf, filedParts } from '../../../support/responses-golden.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/responses/answers/', import.meta.url);
const hello = { model: 'foundation', input: 'Hello' };

interface Streamed {
  readonly text: string;
  readonly events: readonly StreamEvent[];
  readonly answers: readonly ResponseResource[];
}

async function encode(
  parts: readonly ModelStreamPart[],
  request: object = hello,
  onAnswer: (response: ResponseResource) => void = () => undefined,
): Promise<Streamed> {
  let text = '';
  const answers: ResponseResource[] = [];
  const options = {
    now: () => COMPLETED_AT,
    onAnswer: (response: ResponseResource) => {
      // The client must not know of it before it is kept.
      expect(text).not.toMatch(/event: response\.(completed|incomplete)/);
      answers.push(response);
      onAnswer(response);
      return response;
    },
  };
  for await (const piece of encodeResponseStream(envelopeOf(request), streamOf(parts), options)) text += piece;
  return { text, events: validEvents(text), answers };
}

describe('golden', () => {
  test.each(readdirSync(golden).filter((name) => name.endsWith('.json')))('%s', async (name) => {
    const file = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
      request: object;
      parts: ModelStreamPart[];
      body?: object;
    };
    const parts = filedParts(file.parts);
    const { text } = await encode(parts, file.request);
    expect(text).toBe(readFileSync(new URL(name.replace('.json', '.sse'), golden), 'utf8'));
    if (file.body === undefined) return;
    const body = encodeResponse(envelopeOf(file.request), await collect(streamOf(parts)), {
      completedAt: COMPLETED_AT,
    });
    expect(JSON.parse(JSON.stringify(body))).toEqual(file.body);
    expectValidResponse(body);
  });

  test('every transcript has its answer', () => {
    for (const name of readdirSync(golden)) {
      expect(existsSync(new URL(name.replace(/\.\w+$/, '.json'), golden))).toBe(true);
    }
  });
});

const textsOf = (items: readonly Item[]) =>
  items.flatMap((item) => (item.type === 'message' ? (item.content ?? []) : [])).map((part) => part.text);
const thoughtsOf = (items: readonly Item[]) =>
  items.flatMap((item) => (item.type === 'reasoning' ? item.summary : [])).map((part) => part?.text ?? '');
const callsOf = (items: readonly Item[]) => items.filter((item) => item.type === 'function_call');

/** What holds for every stream, whatever it says. */
function expectWellFormed(events: readonly StreamEvent[]): Response {
  expect(events.slice(0, 2).map((event) => event.type)).toEqual(['response.created', 'response.in_progress']);
  const last = events.at(-1)?.response;
  if (last === undefined) throw new Error('the last event has no response');
  const added = events.filter((event) => event.type === 'response.output_item.added');
  const done = events.filter((event) => event.type === 'response.output_item.done');
  expect(added.map((event) => event.output_index)).toEqual(added.map((_, index) => index));
  expect(new Set(added.map((event) => event.item?.id)).size).toBe(added.length);
  for (const { item, output_index: index = -1 } of done) {
    expect(item).toEqual(last.output[index]);
    expect(item?.id).toBe(added[index]?.item?.id);
    expect(item?.type).toBe(added[index]?.item?.type);
  }
  if (last.status !== 'failed') expect(done).toHaveLength(added.length);
  expect(last.output).toHaveLength(added.length);
  for (const [index, { item }] of added.entries()) {
    const own = events.filter((event) => event.item_id === item?.id);
    expect(own.every((event) => event.output_index === index)).toBe(true);
    const deltas = own.map((event) => event.delta ?? '').join('');
    const final = last.output[index];
    const whole = final?.arguments ?? final?.summary?.[0]?.text ?? final?.content?.[0]?.text;
    expect(deltas).toBe(whole);
  }
  return last;
}

/** OpenAI's own client puts the same response together from the events as we send at their end. */
function expectClientAgrees(events: readonly StreamEvent[]): void {
  let snapshot: OpenAIResponse | undefined;
  for (const event of events.slice(0, -1)) snapshot = accumulateResponse(event as ResponseStreamEvent, snapshot);
  expect(snapshot?.output).toEqual(events.at(-1)?.response?.output);
}

function expectSays(last: Response, answer: PortAnswer): void {
  expect(textsOf(last.output).join('')).toBe(answer.text);
  expect(thoughtsOf(last.output).join('')).toBe(answer.reasoning);
  expect(callsOf(last.output)).toMatchObject(
    answer.calls.map(({ id, name, input }) => ({ call_id: id, name, arguments: input, status: 'completed' })),
  );
  expect(textsOf(last.output)).not.toContain('');
}

test('any answer of the port encodes to a valid stream that says the same', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, async (answer) => {
      const { events, answers } = await encode(answer.parts);
      const last = expectWellFormed(events);
      expectSays(last, answer);
      if (answer.finish === 'error') {
        expect(events.at(-1)?.type).toBe('response.failed');
        expect(last).toMatchObject({ status: 'failed', error: { code: 'engine_failed' }, usage: null });
        expect(answers).toEqual([]);
        return;
      }
      expectClientAgrees(events);
      const status = answer.finish === 'length' ? 'incomplete' : 'completed';
      expect(events.at(-1)?.type).toBe(`response.${status}`);
      expect(last).toMatchObject({ status, error: null, usage: { total_tokens: expect.any(Number) } });
      expect(last.incomplete_details).toEqual(answer.finish === 'length' ? { reason: 'max_output_tokens' } : null);
      expect(JSON.parse(JSON.stringify(answers))).toEqual([last]);
    }),
    runs(1000),
  );
});

test('the whole answer is the one at the end of its stream', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, async (answer) => {
      fc.pre(answer.finish !== 'error');
      const body = encodeResponse(envelopeOf(hello), await collect(streamOf(answer.parts)), {
        completedAt: COMPLETED_AT,
      });
      expectValidResponse(body);
      const { answers } = await encode(answer.parts);
      expect([body]).toEqual(answers);
    }),
    runs(500),
  );
});

describe('odd streams', () => {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const finish = (unified: 'stop' | 'length' | 'error' | 'content-filter'): ModelStreamPart => ({
    type: 'finish',
    finishReason: { unified, raw: undefined },
    usage,
  });

  test('blocks that grow by turns are items side by side', async () => {
    const { events } = await encode([
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: 'a' },
      { type: 'reasoning-delta', id: '0', delta: 'x' },
      { type: 'tool-input-start', id: 'call_1', toolName: 'f' },
      { type: 'text-delta', id: '0', delta: 'b' },
      { type: 'tool-input-delta', id: 'call_1', delta: '{}' },
      { type: 'reasoning-delta', id: '0', delta: 'y' },
      { type: 'text-end', id: '0' },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'f', input: '{}' },
      { type: 'reasoning-end', id: '0' },
      finish('stop'),
    ]);
    const last = expectWellFormed(events);
    expectClientAgrees(events);
    expect(last.output.map((item) => item.type)).toEqual(['message', 'reasoning', 'function_call']);
    expect(textsOf(last.output)).toEqual(['ab']);
    expect(thoughtsOf(last.output)).toEqual(['xy']);
  });

  test('what is still open at the end was cut', async () => {
    const { events } = await encode([
      { type: 'text-delta', id: '0', delta: 'a' },
      { type: 'text-end', id: '0' },
      { type: 'tool-input-start', id: 'call_1', toolName: 'f' },
      { type: 'tool-input-delta', id: 'call_1', delta: '{"ci' },
      finish('length'),
    ]);
    const last = expectWellFormed(events);
    expect(last.output.map((item) => item.status)).toEqual(['completed', 'incomplete']);
    expect(callsOf(last.output)[0]?.arguments).toBe('{"ci');
  });

  test.each<[string, ModelStreamPart[], string]>([
    ['one that just ends', [{ type: 'text-delta', id: '0', delta: 'a' }], 'engine_failed'],
    ['one that finishes because of an error', [finish('error')], 'engine_failed'],
    ['one that fails with what nobody may read', [{ type: 'error', error: new Error('secret') }], 'internal'],
  ])('%s has failed', async (_, parts, code) => {
    const { events, text, answers } = await encode(parts);
    expect(events.at(-1)).toMatchObject({ type: 'response.failed', response: { error: { code } } });
    expect(text).not.toContain('secret');
    expect(answers).toEqual([]);
  });

  test('a response that could not be kept has failed, though the model did its part', async () => {
    const { events } = await encode(
      [{ type: 'text-delta', id: '0', delta: 'a' }, { type: 'text-end', id: '0' }, finish('stop')],
      hello,
      () => {
        throw new Error('disk full');
      },
    );
    const last = expectWellFormed(events);
    expect(last).toMatchObject({ status: 'failed', error: { code: 'internal' } });
    expect(textsOf(last.output)).toEqual(['a']);
  });

  test('what is empty is not said at all', async () => {
    const { events } = await encode([
      { type: 'text-start', id: '0' },
      { type: 'text-delta', id: '0', delta: '' },
      { type: 'text-end', id: '0' },
      { type: 'reasoning-start', id: '1' },
      { type: 'reasoning-delta', id: '1', delta: '' },
      { type: 'reasoning-end', id: '1' },
      { type: 'tool-input-start', id: 'call_1', toolName: 'f' },
      { type: 'tool-input-delta', id: 'call_1', delta: '' },
      { type: 'tool-input-delta', id: 'call_1', delta: '{}' },
      { type: 'tool-call', toolCallId: 'call_1', toolName: 'f', input: '{}' },
      finish('stop'),
    ]);
    expect(expectWellFormed(events).output.map((item) => item.type)).toEqual(['function_call']);
    expect(events.map((event) => event.delta)).not.toContain('');
  });

  test('a filtered answer says why it is incomplete', async () => {
    const { events } = await encode([finish('content-filter')]);
    expect(events.at(-1)?.response).toMatchObject({ incomplete_details: { reason: 'content_filter' }, output: [] });
  });
});

describe('the response repeats what was asked for', () => {
  const respond = (request: object) =>
    encodeResponse(
      envelopeOf({ ...hello, ...request }),
      {
        content: [],
        finishReason: { unified: 'stop', raw: undefined },
        usage: {
          inputTokens: { total: 3, noCache: 1, cacheRead: 2, cacheWrite: undefined },
          outputTokens: { total: undefined, text: undefined, reasoning: undefined },
        },
        warnings: [],
      },
      { completedAt: COMPLETED_AT },
    );

  test.each<[object, object]>([
    [{}, { temperature: 0.7, top_p: 1, store: true, tool_choice: 'auto', parallel_tool_calls: true, metadata: {} }],
    [{}, { reasoning: { effort: null, summary: null }, text: { format: { type: 'text' }, verbosity: 'medium' } }],
    [
      { temperature: 0, top_p: 0.5, store: false },
      { temperature: 0, top_p: 0.5, store: false },
    ],
    [
      { instructions: 'x', max_output_tokens: 9 },
      { instructions: 'x', max_output_tokens: 9 },
    ],
    [
      { metadata: { a: 'b' }, user: 'u' },
      { metadata: { a: 'b' }, user: 'u' },
    ],
    [
      { prompt_cache_key: 'k', safety_identifier: 's' },
      { prompt_cache_key: 'k', safety_identifier: 's' },
    ],
    [{ tool_choice: { type: 'function', name: 'f' } }, { tool_choice: { type: 'function', name: 'f' } }],
    [
      { tool_choice: { type: 'allowed_tools', tools: [{ type: 'function', name: 'f' }, { type: 'web_search' }] } },
      { tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'f' }] } },
    ],
    [
      { tools: [{ type: 'function', name: 'f' }, { type: 'web_search' }] },
      { tools: [{ type: 'function', name: 'f', description: null, strict: null }] },
    ],
    [
      { text: { format: { type: 'json_schema', name: 'a', schema: { type: 'object' } } } },
      { text: { format: { type: 'json_schema', name: 'a', strict: false } } },
    ],
    [{}, { usage: { input_tokens: 3, input_tokens_details: { cached_tokens: 2 }, output_tokens: 0, total_tokens: 3 } }],
  ])('%j', (request, expected) => {
    const body = respond(request);
    expectValidResponse(body);
    expect(body).toMatchObject(expected);
  });
});
