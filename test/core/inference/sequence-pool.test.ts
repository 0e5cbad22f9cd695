import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { chooseSequence } from '../../../core/inference/runner/sequence-pool.ts';
import { runs } from '../../support/sampling.ts';

/** Conversations as texts, a token a letter: a prompt, and after the bar what was answered. */
const choose = (prompt: string, ...held: string[]) => {
  const tokens = (text: string) => Array.from(text.replace('|', ''), (letter) => letter.codePointAt(0)!);
  return chooseSequence(
    tokens(prompt),
    held.map((text) => ({ tokens: tokens(text), promptTokens: text.replace(/\|.*/, '').length, restedMs: 1000 })),
  );
};

describe('a prompt goes', () => {
  test('to the conversation that it continues, wherever that is', () => {
    expect(choose('what is this? a rose. and this?', 'what was that? ', 'what is this? |a rose.', 'who?', '')).toBe(1);
  });

  test('there too when it leaves out what was thought, or asks again', () => {
    expect(choose('what is this? a rose. and?', 'what is this? |a long thought before the answer: a rose.', '')).toBe(
      0,
    );
    expect(choose('what is this? ', 'what is this? |an answer longer than any question', '')).toBe(0);
  });

  test('to an empty sequence, if nobody has anything of it', () => {
    expect(choose('abcdefghijklmn', 'uvwxyzuvwxyz', '', 'zyxwvuzyxwvu')).toBe(1);
    expect(choose('abc', '', '', '')).toBe(0);
  });

  test('not over a long conversation for the sake of a short common beginning', () => {
    expect(choose('SYabc', 'SYa long conversation about this and that', '')).toBe(1);
  });

  test('over a short conversation for the sake of a long common beginning', () => {
    expect(choose('a long system prompt with tools: hi', 'a long system prompt with tools: bye', '')).toBe(0);
  });

  test('where nothing is empty, over the one that has least to lose', () => {
    const rested = (length: number, minutes: number) => ({
      tokens: Array.from({ length }, () => 2),
      promptTokens: length,
      restedMs: minutes * 60_000,
    });
    expect(chooseSequence([1], [rested(30, 0), rested(20, 0), rested(25, 0)])).toBe(1);
    expect(chooseSequence([1], [rested(20, 0), rested(40, 9)])).toBe(0);
    expect(chooseSequence([1], [rested(20, 0), rested(40, 11)])).toBe(1);
  });
});

test('interleaved conversations, as many as there are sequences, each find their own', () => {
  const turns = fc.array(fc.tuple(fc.integer({ min: 0, max: 3 }), fc.integer({ min: 1, max: 30 })), {
    minLength: 10,
    maxLength: 60,
  });
  fc.assert(
    fc.property(turns, fc.integer({ min: 0, max: 50 }), (all, systemTokens) => {
      const held: number[][] = [[], [], [], []];
      const conversations = [1, 2, 3, 4].map((name) => [
        ...Array.from({ length: systemTokens }, () => 0),
        ...Array.from({ length: systemTokens + 10 }, () => name),
      ]);
      for (const [index, length] of all) {
        const before = conversations[index]!;
        const wasHeld = held.some(
          (tokens) => tokens.length === before.length && tokens.every((t, i) => t === before[i]),
        );
        const prompt = [...before, ...Array.from({ length }, () => 10 + index)];
        const chosen = chooseSequence(
          prompt,
          held.map((tokens) => ({ tokens, promptTokens: tokens.length, restedMs: 0 })),
        );
        if (wasHeld) expect(held[chosen]).toEqual(before);
        held[chosen] = prompt;
        conversations[index] = prompt;
      }
    }),
    runs(200),
  );
});
