import { readdirSync, readFileSync } from 'node:fs';
import type { LanguageModelV4FinishReason, LanguageModelV4GenerateResult } from '@ai-sdk/provider';
import Anthropic from '@anthropic-ai/sdk';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../../core/errors.ts';
import { collect, type ModelStreamPart } from '../../../../core/inference/model-port.ts';
import { outwardError, RequestError } from '../../../../gateway/errors.ts';
import { encodeAnthropicError } from '../../../../gateway/wire/anthropic/error.ts';
import { encodeMessage, type MessageEnvelope } from '../../../../gateway/wire/anthropic/response.ts';
import { encodeMessageStream } from '../../../../gateway/wire/anthropic/stream.ts';
import { portAnswer, streamOf, type PortAnswer } from '../../../support/port-events.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/anthropic/answers/', import.meta.url);
const envelope: MessageEnvelope = { id: 'msg_1', model: 'm', showThinking: true };

async function encode(parts: readonly ModelStreamPart[], as = envelope): Promise<string> {
  let text = '';
  for await (const piece of encodeMessageStream(as, streamOf(parts))) text += piece;
  return text;
}

const whole = async (parts: readonly ModelStreamPart[], as = envelope) =>
  encodeMessage(as, await collect(streamOf(parts))) as Anthropic.Message;

/** What Anthropic's own client makes of a stream, without what it adds by itself. */
async function readWithClient(text: string): Promise<Anthropic.Message> {
  const answer = () => Promise.resolve(new Response(text, { headers: { 'content-type': 'text/event-stream' } }));
  const client = new Anthropic({ apiKey: 'any', fetch: answer, maxRetries: 0 });
  const request = { model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'x' } as const] };
  const message = await client.messages.stream(request).finalMessage();
  const without = (key: string, value: unknown): unknown => (key === 'parsed_output' ? undefined : value);
  return JSON.parse(JSON.stringify(message, without)) as Anthropic.Message;
}

/** The events of a stream, each of one line, after a look at their order. */
function checkedEvents(text: string): string[] {
  expect(text.endsWith('\n\n')).toBe(true);
  const events = text
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      const [, name, data] = /^event: (\w+)\ndata: ([^\n]+)$/.exec(event) ?? [];
      const body = JSON.parse(data ?? '') as { type: string; index?: number };
      expect(body.type).toBe(name);
      return { name: body.type, index: body.index };
    });
  const order = events.map(({ name, index }) => `${name.replace('content_block_', '')}${index ?? ''} `).join('');
  expect(order).toMatch(
    /^message_start ping (?:start(?<one>\d+) (?:delta\k<one> )*stop\k<one> )*(?:message_delta message_stop |(?:start(?<last>\d+) (?:delta\k<last> )*)?error )$/,
  );
  const starts = events.filter(({ name }) => name === 'content_block_start').map(({ index }) => index);
  expect(starts).toEqual([...starts.keys()]);
  return events.map(({ name }) => name);
}

const answers = readdirSync(golden).filter((name) => name.endsWith('.json'));

test.each(answers)('golden: %s', async (name) => {
  const { parts, message } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as {
    parts: ModelStreamPart[];
    message: object | null;
  };
  expect(await encode(parts)).toBe(readFileSync(new URL(name.replace('.json', '.sse'), golden), 'utf8'));
  if (message === null) await expect(whole(parts)).rejects.toThrow(ServiceError);
  else expect(await whole(parts)).toEqual(message);
});

/** The blocks that an answer's parts make, in the order in which they begin. */
function blocksOf(parts: readonly ModelStreamPart[]): ModelStreamPart[][] {
  const blocks = new Map<string, ModelStreamPart[]>();
  for (const part of parts) {
    const id = 'toolCallId' in part ? part.toolCallId : 'id' in part ? part.id : undefined;
    if (id !== undefined) blocks.set(id, [...(blocks.get(id) ?? []), part]);
  }
  return [...blocks.values()];
}

/** The same blocks, all under way at once: `choices` says which goes on next. */
function interleave(answer: PortAnswer, choices: readonly number[]): ModelStreamPart[] {
  const waiting = blocksOf(answer.parts);
  const mixed: ModelStreamPart[] = [];
  for (let step = 0; waiting.length > 0; step += 1) {
    const at = (choices[step % choices.length] ?? 0) % waiting.length;
    mixed.push(...waiting[at]!.splice(0, 1));
    if (waiting[at]!.length === 0) waiting.splice(at, 1);
  }
  return [answer.parts[0]!, ...mixed, answer.parts.at(-1)!];
}

test('any answer of the port encodes to a stream that the client reads as the whole answer', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, fc.boolean(), async ({ parts, finish }, showThinking) => {
      const as = { ...envelope, showThinking };
      const text = await encode(parts, as);
      checkedEvents(text);
      if (finish === 'error') {
        const failure = { type: 'api_error', apiMessage: 'The model runner stopped unexpectedly.' };
        await expect(readWithClient(text)).rejects.toMatchObject(failure);
        return;
      }
      expect(await readWithClient(text)).toEqual(await whole(parts, as));
    }),
    runs(2000),
  );
});

test('blocks that the port sends at the same time go out one after the other, none of them changed', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, fc.array(fc.nat(7), { minLength: 1, maxLength: 9 }), async (answer, choices) => {
      fc.pre(answer.finish !== 'error');
      const mixed = interleave(answer, choices);
      const text = await encode(mixed);
      checkedEvents(text);
      const sorted = [mixed[0]!, ...blocksOf(mixed).flat(), mixed.at(-1)!];
      expect(await readWithClient(text)).toEqual(await whole(sorted));
    }),
    runs(1000),
  );
});

test('a stream that breaks off anywhere ends in one error', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, fc.nat(40), async ({ parts }, cut) => {
      const text = await encode(parts.slice(0, Math.min(cut, parts.length - 1)));
      expect(checkedEvents(text).filter((name) => name === 'error')).toHaveLength(1);
      await expect(readWithClient(text)).rejects.toMatchObject({ type: 'api_error' });
    }),
    runs(1000),
  );
});

describe('the answer', () => {
  const usage = {
    inputTokens: { total: 30, noCache: undefined, cacheRead: 10, cacheWrite: 5 },
    outputTokens: { total: 4, text: 4, reasoning: undefined },
  };
  const ending = (unified: LanguageModelV4FinishReason['unified']): LanguageModelV4GenerateResult => ({
    finishReason: { unified, raw: undefined },
    usage,
    content: [],
    warnings: [],
  });
  const stopped = { providerMetadata: { postern: { stopSequence: 'END' } } };

  test.each([
    ['end_turn', null, ending('stop')],
    ['stop_sequence', 'END', { ...ending('stop'), ...stopped }],
    ['max_tokens', null, { ...ending('length'), ...stopped }],
    ['tool_use', null, ending('tool-calls')],
    ['refusal', null, ending('content-filter')],
    ['end_turn', null, ending('error')],
    ['end_turn', null, ending('interrupted')],
    ['end_turn', null, ending('other')],
  ])('stops with %s, %j', (stop_reason, stop_sequence, result) => {
    expect(encodeMessage(envelope, result)).toMatchObject({ stop_reason, stop_sequence });
  });

  test('counts every token of the prompt once', () => {
    expect(encodeMessage(envelope, ending('stop'))).toMatchObject({
      usage: {
        input_tokens: 15,
        cache_read_input_tokens: 10,
        cache_creation_input_tokens: 5,
        output_tokens: 4,
        output_tokens_details: { thinking_tokens: 0 },
      },
    });
  });

  test.each(['{"a":', '[1]', 'null', '"x"'])('with %s as the arguments of a tool is a failure', (input) => {
    const content = [{ type: 'tool-call', toolCallId: 'call_1', toolName: 'x', input } as const];
    expect(() => encodeMessage(envelope, { ...ending('tool-calls'), content })).toThrow(
      expect.objectContaining({ code: 'engine_failed' }),
    );
  });

  test('a tool without arguments is called with none', () => {
    const content = [{ type: 'tool-call', toolCallId: 'call_1', toolName: 'x', input: '' } as const];
    expect(encodeMessage(envelope, { ...ending('tool-calls'), content })).toMatchObject({
      content: [{ type: 'tool_use', id: 'toolu_1', name: 'x', input: {} }],
    });
  });
});

describe('errors', () => {
  test.each<[Error, string, number]>([
    [new RequestError('bad_request', 'x'), 'invalid_request_error', 400],
    [new RequestError('unauthenticated', 'x'), 'authentication_error', 401],
    [new RequestError('cross_site', 'x'), 'permission_error', 403],
    [new ServiceError('model_not_found', 'x'), 'not_found_error', 404],
    [new RequestError('body_too_large', 'x'), 'request_too_large', 413],
    [new RequestError('rate_limited', 'x'), 'rate_limit_error', 429],
    [new ServiceError('engine_failed', 'x'), 'api_error', 500],
    [new ServiceError('overloaded', 'x'), 'overloaded_error', 503],
    [new ServiceError('insufficient_resources', 'x'), 'overloaded_error', 503],
  ])('%s: %s', (error, type, status) => {
    const outward = outwardError(error);
    expect(outward.status).toBe(status);
    expect(encodeAnthropicError(outward)).toEqual({ type: 'error', error: { type, message: 'x' } });
  });

  test('a prompt that is too long says so in the words that agents look for', () => {
    const error = new ServiceError('prompt_too_long', 'The prompt has 5001 tokens, …');
    expect(encodeAnthropicError(outwardError(error))).toEqual({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: The prompt has 5001 tokens, …' },
    });
  });

  test('and says how many tokens there are, and may be, in the form that they read', () => {
    const excess = { promptTokens: 5001, contextTokens: 4096 };
    const error = new ServiceError('prompt_too_long', 'The prompt has 5001 tokens, …', { excess });
    expect(encodeAnthropicError(outwardError(error))).toMatchObject({
      error: { message: 'prompt is too long: 5001 tokens > 4096 maximum. The prompt has 5001 tokens, …' },
    });
  });

  test('a thread is refused in the way that makes clients go on without one', () => {
    const error = new RequestError('bad_request', 'thread: …', { param: 'thread' });
    expect(encodeAnthropicError(outwardError(error))).toEqual({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message: 'thread: …',
        details: { error_code: 'thread_unsupported_request' },
      },
    });
  });

  test('what went wrong inside stays inside', async () => {
    const text = await encode([{ type: 'error', error: new TypeError('the prompt was: secret') }]);
    expect(text).not.toContain('secret');
    expect(text).toContain('event: error\ndata: {"type":"error","error":{"type":"api_error","message":"Something went');
  });
});
