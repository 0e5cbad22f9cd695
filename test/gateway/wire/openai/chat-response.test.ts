import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ServiceError } from '../../../../core/errors.ts';
import { collect, type ModelStreamPart } from '../../../../core/inference/model-port.ts';
import {
  encodeChatResponse,
  encodeChatStream,
  prefixHash,
  type ChatEnvelope,
} from '../../../../gateway/wire/openai/chat-response.ts';
import { portAnswer, streamOf, type PortAnswer } from '../../../support/port-events.ts';
import { runs } from '../../../support/sampling.ts';

const envelope: ChatEnvelope = { id: 'chatcmpl-1', created: 1_700_000_000, model: 'm', prefixHash: 'f'.repeat(32) };

interface Chunk {
  object: string;
  prefix_hash?: string;
  choices: { index: number; delta: Delta; finish_reason: string | null }[];
  usage?: { total_tokens: number } | null;
  error?: { message: string; type: string };
}
interface Delta {
  role?: string;
  content?: string;
  reasoning_content?: string;
  tool_calls?: { index: number; id?: string; function: { name?: string; arguments: string } }[];
}

async function encode(
  answer: PortAnswer,
  includeUsage: boolean,
): Promise<{ text: string; events: string[]; chunks: Chunk[] }> {
  let text = '';
  for await (const piece of encodeChatStream(envelope, streamOf(answer.parts), { includeUsage })) text += piece;
  const events = text.split('\n\n').slice(0, -1);
  return {
    text,
    events,
    chunks: events
      .filter((event) => event !== 'data: [DONE]')
      .map((event) => JSON.parse(event.replace(/^data: /, '')) as Chunk),
  };
}

const golden = new URL('../golden/openai-chat/answers/', import.meta.url);

interface Golden {
  readonly includeUsage: boolean;
  readonly parts: readonly ModelStreamPart[];
}

describe.each(
  readdirSync(golden)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length)),
)('golden: %s', (name) => {
  const { parts, includeUsage } = JSON.parse(readFileSync(new URL(`${name}.json`, golden), 'utf8')) as Golden;
  const failure = new ServiceError('engine_failed', 'The model runner stopped unexpectedly.');
  const answer = parts.map((part) => (part.type === 'error' ? { ...part, error: failure } : part));

  test('as a stream', async () => {
    let text = '';
    for await (const piece of encodeChatStream(envelope, streamOf(answer), { includeUsage })) text += piece;
    await expect(text).toMatchFileSnapshot(new URL(`${name}.sse`, golden).pathname);
  });

  test('as a whole', async () => {
    const result = await collect(streamOf(answer)).catch((error: unknown) => error);
    if (result === failure) return;
    const body = encodeChatResponse(envelope, result as Awaited<ReturnType<typeof collect>>);
    await expect(`${JSON.stringify(body, null, 2)}\n`).toMatchFileSnapshot(
      new URL(`${name}.body.txt`, golden).pathname,
    );
  });
});

test('any answer of the port encodes to a valid stream that says the same', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, fc.boolean(), async (answer, includeUsage) => {
      const { text, events, chunks } = await encode(answer, includeUsage);
      // After an error nothing calls the answer whole.
      expect(text.endsWith('data: [DONE]\n\n')).toBe(answer.finish !== 'error');
      expect(events.every((event) => /^data: [^\n]+$/.test(event))).toBe(true);
      expect(chunks[0]).toMatchObject({
        choices: [{ delta: { role: 'assistant', content: '' } }],
        prefix_hash: envelope.prefixHash,
      });
      const deltas = chunks.flatMap((chunk) => (chunk.error ? [] : chunk.choices.map((choice) => choice.delta)));
      expect(deltas.map((delta) => delta.content ?? '').join('')).toBe(answer.text);
      expect(deltas.map((delta) => delta.reasoning_content ?? '').join('')).toBe(answer.reasoning);
      const calls = deltas.flatMap((delta) => delta.tool_calls ?? []);
      for (const [index, call] of answer.calls.entries()) {
        const own = calls.filter((one) => one.index === index);
        expect(own[0]).toMatchObject({ id: call.id, function: { name: call.name } });
        expect(own.slice(1).every((one) => one.id === undefined && one.function.name === undefined)).toBe(true);
        expect(own.map((one) => one.function.arguments).join('')).toBe(call.input);
      }
      expect(new Set(calls.map((call) => call.index)).size).toBe(answer.calls.length);
      if (answer.finish === 'error') {
        expect(chunks.at(-1)?.error).toMatchObject({ type: 'internal_error' });
        return;
      }
      const reasons = chunks
        .flatMap((chunk) => chunk.choices.map((choice) => choice.finish_reason))
        .filter((one) => one !== null);
      expect(reasons).toEqual([answer.finish.replace('-', '_')]);
      expect(chunks.filter((chunk) => chunk.choices.length === 0)).toHaveLength(includeUsage ? 1 : 0);
    }),
    runs(2000),
  );
});

test('the whole answer says what its stream says', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, async (answer) => {
      fc.pre(answer.finish !== 'error');
      const body = encodeChatResponse(envelope, await collect(streamOf(answer.parts))) as {
        choices: {
          message: { content: string | null; reasoning_content?: string; tool_calls?: object[] };
          finish_reason: string;
        }[];
      };
      const { message, finish_reason } = body.choices[0]!;
      expect(message.content ?? '').toBe(answer.text);
      expect(message.reasoning_content ?? '').toBe(answer.reasoning);
      expect(message.tool_calls ?? []).toEqual(
        answer.calls.map((call) => ({
          id: call.id,
          type: 'function',
          function: { name: call.name, arguments: call.input },
        })),
      );
      expect(finish_reason).toBe(answer.finish.replace('-', '_'));
    }),
    runs(1000),
  );
});

describe('prefix_hash', () => {
  const system = (content: string) => ({ role: 'system' as const, content });
  const user = (text: string) => ({ role: 'user' as const, content: [{ type: 'text' as const, text }] });
  const tools = (...names: string[]) => names.map((name) => ({ type: 'function' as const, name, inputSchema: {} }));

  test('follows the system messages and the names of the tools, not their order', () => {
    const hash = prefixHash({ prompt: [system('a'), user('b')], tools: tools('x', 'y') });
    expect(prefixHash({ prompt: [system('a'), user('other')], tools: tools('y', 'x') })).toBe(hash);
    expect(prefixHash({ prompt: [system('A'), user('b')], tools: tools('x', 'y') })).not.toBe(hash);
    expect(prefixHash({ prompt: [system('a'), user('b')], tools: tools('x') })).not.toBe(hash);
  });
});
