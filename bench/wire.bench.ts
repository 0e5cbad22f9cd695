/**
 * What each wire style costs a streamed token: its codec over the same answer of the port, against the least that any
 * stream of JSON costs, one `JSON.stringify` of the delta. `node dist/bench/wire.bench.js`.
 */
import type { ModelStreamPart } from '../core/inference/model-port.ts';
import { atOnce } from '../core/steps.ts';
import { encodeMessageStream } from '../gateway/wire/anthropic/stream.ts';
import { encodeOllamaStream } from '../gateway/wire/ollama/response.ts';
import { encodeChatStream } from '../gateway/wire/openai/chat-response.ts';
import { encodeCompletionStream } from '../gateway/wire/openai/completions-response.ts';
import { parseResponsesBody, parseResponsesRequest } from '../gateway/wire/responses/request.ts';
import { encodeResponseStream } from '../gateway/wire/responses/stream.ts';

const TOKENS = 2000;
const ROUNDS = 40;

const deltas: ModelStreamPart[] = Array.from({ length: TOKENS }, (_, index) => ({
  type: 'text-delta',
  id: '0',
  delta: ` word${index % 97}`,
}));
const answer: readonly ModelStreamPart[] = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '0' },
  ...deltas,
  { type: 'text-end', id: '0' },
  {
    type: 'finish',
    finishReason: { unified: 'stop', raw: undefined },
    usage: {
      inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: undefined },
      outputTokens: { total: TOKENS, text: TOKENS, reasoning: 0 },
    },
  },
];

async function* parts(): AsyncGenerator<ModelStreamPart> {
  yield* answer;
}

async function* bare(): AsyncGenerator<string> {
  for await (const part of parts()) yield `data: ${JSON.stringify(part)}\n\n`;
}

const model = 'foundation';
const body = atOnce(parseResponsesBody({ model, input: 'Hello' }));
const { input, tools } = atOnce(parseResponsesRequest(body, { key: 'k', conversation: [], findItem: () => undefined }));
const clock = { now: () => 1_700_000_000_000, elapsed: () => 1 };

const styles: Readonly<Record<string, () => AsyncIterable<string>>> = {
  'bare JSON.stringify': bare,
  'OpenAI chat': () =>
    encodeChatStream({ id: 'chatcmpl-1', created: 1, model, prefixHash: 'x' }, parts(), { includeUsage: true }),
  'OpenAI completions': () =>
    encodeCompletionStream({ id: 'cmpl-1', created: 1, model, echo: '' }, parts(), { includeUsage: true }),
  'Open Responses': () =>
    encodeResponseStream({ key: 'k', inputItems: input.length, createdAt: 1, model, request: body, tools }, parts(), {
      now: () => 1,
      onAnswer: (response) => response,
    }),
  'Anthropic messages': () => encodeMessageStream({ id: 'msg_1', model, showThinking: true }, parts()),
  'Ollama chat': () => encodeOllamaStream({ route: 'chat', model, clock, loadDuration: 1 }, parts()),
};

/** Microseconds for one token. */
async function measure(encode: () => AsyncIterable<string>): Promise<number> {
  const start = process.hrtime.bigint();
  let bytes = 0;
  for await (const piece of encode()) bytes += piece.length;
  if (bytes === 0) throw new Error('nothing was encoded');
  return Number(process.hrtime.bigint() - start) / 1000 / TOKENS;
}

const best = new Map<string, number>();
for (let round = 0; round < ROUNDS; round += 1) {
  for (const [name, encode] of Object.entries(styles)) {
    best.set(name, Math.min(best.get(name) ?? Infinity, await measure(encode)));
  }
}
const floor = best.get('bare JSON.stringify') ?? 1;
console.log('style                  µs a token   of bare');
for (const [name, us] of best)
  console.log(`${name.padEnd(22)} ${us.toFixed(2).padStart(10)} ${(us / floor).toFixed(2).padStart(9)}`);
