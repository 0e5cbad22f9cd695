import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { expect, test } from 'vitest';
import { prefill } from '../../../../../core/inference/local/runner/prefill.ts';

/** A sequence that holds the beginning of a prompt already, and tells of each piece that it is given. */
function sequenceOf(held: readonly number[], onPiece: (piece: readonly number[]) => void = () => undefined) {
  const tokens = [...held];
  const pieces: number[] = [];
  const sequence = {
    get nextTokenIndex() {
      return tokens.length;
    },
    adaptStateToTokens: async (prompt: number[]) => {
      const common = tokens.findIndex((token, index) => token !== prompt[index]);
      if (common !== -1) tokens.length = common;
    },
    evaluateWithoutGeneratingNewTokens: async (piece: number[]) => {
      tokens.push(...piece);
      pieces.push(piece.length);
      onPiece(piece);
    },
  };
  return { sequence: sequence as unknown as LlamaContextSequence, tokens, pieces };
}
const prompt = Array.from({ length: 5000 }, (_, index) => index as Token);
const { signal } = new AbortController();

test('a prompt is read in pieces, in order, but for a last piece', async () => {
  const { sequence, tokens, pieces } = sequenceOf([]);
  await prefill(sequence, prompt, signal);
  expect(tokens).toEqual(prompt.slice(0, tokens.length));
  expect(tokens.length).toBeLessThan(prompt.length);
  expect(pieces[0]).toBe(128);
  expect(Math.max(...pieces)).toBeLessThanOrEqual(2048);
});

test('only what the sequence does not hold is read; what it holds beyond the prompt is dropped', async () => {
  const { sequence, tokens, pieces } = sequenceOf([...prompt.slice(0, 4000), 1, 2, 3]);
  await prefill(sequence, prompt, signal);
  expect(tokens).toEqual(prompt.slice(0, tokens.length));
  expect(pieces.reduce((sum, length) => sum + length, 0)).toBe(tokens.length - 4000);
});

test('a short prompt is left to the answer', async () => {
  const { sequence, pieces } = sequenceOf([]);
  await prefill(sequence, prompt.slice(0, 128), signal);
  expect(pieces).toEqual([]);
});

test('a cancelled prompt is left after the piece that is being read', async () => {
  const leave = new AbortController();
  const { sequence, pieces } = sequenceOf([], () => leave.abort(new Error('gone')));
  await expect(prefill(sequence, prompt, leave.signal)).rejects.toThrow('gone');
  expect(pieces).toEqual([128]);
  await expect(prefill(sequence, prompt, leave.signal)).rejects.toThrow('gone');
  expect(pieces).toEqual([128]);
});
