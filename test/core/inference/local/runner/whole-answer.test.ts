import { expect, test } from 'vitest';
import { generationMsOf, type ModelStreamPart } from '../../../../../core/inference/model-port.ts';
import { collectWhole } from '../../../../../core/inference/local/runner/whole-answer.ts';

const tokens = { noCache: 1, cacheRead: 0, cacheWrite: undefined, total: 1, text: 1, reasoning: 0 };
const start: ModelStreamPart = { type: 'stream-start', warnings: [] };
const finish: ModelStreamPart = {
  type: 'finish',
  usage: { inputTokens: tokens, outputTokens: tokens },
  finishReason: { unified: 'stop', raw: 'eogToken' },
  providerMetadata: { postern: { stopSequence: '.' } },
};

function collecting() {
  const clock = { ms: 0 };
  const { emit, take } = collectWhole(() => clock.ms);
  return { take, at: (ms: number, ...parts: readonly ModelStreamPart[]) => ((clock.ms = ms), parts.forEach(emit)) };
}

test('all that a model wrote is one answer, with what it says of itself', () => {
  const { at, take } = collecting();
  at(0, start, { type: 'reasoning-start', id: 'r' }, { type: 'reasoning-delta', id: 'r', delta: 'Hm' });
  at(0, { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'Par' });
  at(0, { type: 'text-delta', id: 't', delta: 'is' }, { type: 'text-end', id: 't' }, finish);
  expect(take()).toMatchObject({
    content: [
      { type: 'reasoning', text: 'Hm' },
      { type: 'text', text: 'Paris' },
    ],
    usage: { outputTokens: { total: 1 } },
    finishReason: { unified: 'stop' },
    providerMetadata: { postern: { stopSequence: '.' } },
  });
});

test.each<ModelStreamPart>([
  { type: 'text-delta', id: '0', delta: 'x' },
  { type: 'reasoning-delta', id: '0', delta: 'x' },
  { type: 'tool-input-start', id: 't', toolName: 'look' },
  { type: 'tool-call', toolCallId: 't', toolName: 'look', input: '{}' },
])('how long it took counts from the first that the model wrote: $type', (piece) => {
  const { at, take } = collecting();
  at(1000, start, { type: 'text-start', id: '0' });
  at(1500, piece);
  at(1700, { type: 'text-delta', id: '0', delta: 'y' });
  at(2000, finish);
  expect(generationMsOf(take())).toBe(500);
});

test('an answer without a word took no time to write', () => {
  const { at, take } = collecting();
  at(5, start, finish);
  expect(generationMsOf(take())).toBeUndefined();
});

test('nobody takes an answer that has not ended', () => {
  const { at, take } = collecting();
  at(0, start);
  expect(take).toThrow(TypeError);
});
