import { readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { collect, type ModelStreamPart } from '../../../../core/inference/model-port.ts';
import {
  encodeCompletionResponse,
  encodeCompletionStream,
  type CompletionEnvelope,
} from '../../../../gateway/wire/openai/completions-response.ts';
import { portAnswer, streamOf } from '../../../support/port-events.ts';
import { runs } from '../../../support/sampling.ts';

const golden = new URL('../golden/completions/answers/', import.meta.url);
const envelope = (echo = ''): CompletionEnvelope => ({
  id: 'cmpl-1',
  created: 1_795_238_131,
  model: 'foundation',
  echo,
});

interface Chunk {
  id: string;
  object: string;
  choices: { text: string; index: number; logprobs: null; finish_reason: string | null }[];
  usage?: { prompt_tokens: number; completion_tokens: number; total_tokens: number } | null;
  error?: { type: string };
}

interface Encoded {
  readonly parts: readonly ModelStreamPart[];
  readonly echo: string;
  readonly includeUsage: boolean;
}

async function streamEvents({ parts, echo, includeUsage }: Encoded): Promise<string[]> {
  let text = '';
  for await (const piece of encodeCompletionStream(envelope(echo), streamOf(parts), { includeUsage })) text += piece;
  expect(text.endsWith('\n\n')).toBe(true);
  return text
    .split('\n\n')
    .slice(0, -1)
    .map((event) => event.replace(/^data: /, ''));
}

test.each(readdirSync(golden))('golden: %s', async (name) => {
  const { stream, body, ...given } = JSON.parse(readFileSync(new URL(name, golden), 'utf8')) as Encoded & {
    stream: unknown[];
    body: object;
  };
  const events = await streamEvents(given);
  expect(events.map((event): unknown => (event === '[DONE]' ? event : JSON.parse(event)))).toEqual(stream);
  expect(encodeCompletionResponse(envelope(given.echo), await collect(streamOf(given.parts)))).toEqual(body);
});

test('any answer of the port encodes to a valid stream that says the same', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, fc.boolean(), fc.string({ maxLength: 5 }), async (answer, includeUsage, echo) => {
      const events = await streamEvents({ parts: answer.parts, echo, includeUsage });
      // After an error nothing calls the answer whole.
      expect(events.at(-1) === '[DONE]').toBe(answer.finish !== 'error');
      const chunks = events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event) as Chunk);
      const choices = chunks.flatMap((chunk) => chunk.choices ?? []);
      expect(choices.map((choice) => choice.text).join('')).toBe(echo + answer.text);
      if (answer.finish === 'error') {
        expect(chunks.at(-1)?.error).toMatchObject({ type: 'internal_error' });
        return;
      }
      expect(chunks.every((chunk) => chunk.object === 'text_completion' && chunk.id === 'cmpl-1')).toBe(true);
      const reasons = choices.map((choice) => choice.finish_reason).filter((reason) => reason !== null);
      expect(reasons).toEqual([answer.finish === 'length' ? 'length' : 'stop']);
      expect(choices.at(-1)?.finish_reason).not.toBeNull();
      expect(chunks.filter((chunk) => chunk.choices.length === 0)).toHaveLength(includeUsage ? 1 : 0);
      expect(chunks.every((chunk) => 'usage' in chunk === includeUsage)).toBe(true);
    }),
    runs(2000),
  );
});

test('the whole answer says what its stream says, and what it cost', async () => {
  await fc.assert(
    fc.asyncProperty(portAnswer, async (answer) => {
      fc.pre(answer.finish !== 'error');
      const body = encodeCompletionResponse(envelope(), await collect(streamOf(answer.parts))) as Chunk;
      expect(body.choices[0]).toMatchObject({ text: answer.text, index: 0, logprobs: null });
      const usage = body.usage!;
      expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    }),
    runs(1000),
  );
});

test('a port that stops without an end is an error', async () => {
  const events = await streamEvents({ parts: [{ type: 'stream-start', warnings: [] }], echo: '', includeUsage: true });
  expect(events).toHaveLength(1);
  expect(JSON.parse(events[0]!)).toMatchObject({ error: { type: 'internal_error' } });
});
