import fc from 'fast-check';
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { describe, expect, test } from 'vitest';
import { chooseSequence, createSequencePool } from '../../../../../core/inference/local/runner/sequence-pool.ts';
import { runs } from '../../../../support/sampling.ts';

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

describe('tokens of another owner', () => {
  /** A sequence that was cleared has nothing of what it held. */
  function sequenceOf() {
    const contextTokens: Token[] = [];
    const sequence = { contextTokens, clearHistory: async () => void contextTokens.splice(0) };
    return sequence as unknown as LlamaContextSequence;
  }
  const owner = (name: string) => ({ name, isGuest: name.startsWith('guest') });
  const tokensOf = (text: string) => Array.from(text, (letter) => letter.codePointAt(0)! as Token);

  function poolOf(size: number) {
    const all = Array.from({ length: size }, sequenceOf);
    const pool = createSequencePool(all, () => 0);
    /** @returns how many tokens of the prompt were there already, and in which sequence */
    const ask = async (name: string, prompt: string) => {
      const tokens = tokensOf(prompt);
      const sequence = await pool.acquire(tokens, owner(name));
      const held = sequence.contextTokens;
      const found = held.findIndex((token, index) => token !== tokens[index]);
      const reused = found === -1 ? Math.min(held.length, tokens.length) : found;
      held.splice(0, held.length, ...tokens);
      pool.release(sequence);
      return { reused, at: all.indexOf(sequence) };
    };
    return { pool, ask };
  }

  test('are never found again, and those of the same owner are', async () => {
    const names = ['owner', 'key 1', 'key 2', 'guest a', 'guest b'];
    const asked = fc.record({ name: fc.constantFrom(...names), prompt: fc.stringMatching(/^s[ab]{0,6}$/) });
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { maxLength: 40 }), fc.integer({ min: 1, max: 4 }), async (calls, size) => {
        const { ask } = poolOf(size);
        const own = new Map<string, string[]>();
        for (const { name, prompt } of calls) {
          const said = own.get(name) ?? [];
          const most = Math.max(0, ...said.map((text) => commonLength(text, prompt)));
          expect((await ask(name, prompt)).reused).toBeLessThanOrEqual(most);
          own.set(name, [...said, prompt]);
        }
      }),
      runs(400),
    );
  });

  test('of a guest go first, and a guest takes no others than guests have while there are any', async () => {
    const { ask } = poolOf(3);
    await ask('owner', 'a long conversation of the owner');
    await ask('key 1', 'a long conversation with a key');
    const { at } = await ask('guest a', 'x');
    for (const guest of ['guest b', 'guest c', 'guest a']) {
      expect((await ask(guest, 'another and much longer conversation of a guest')).at).toBe(at);
    }
    expect((await ask('key 2', 'y')).at).toBe(at);
    expect((await ask('owner', 'a long conversation of the owner')).reused).toBe(32);
    expect((await ask('key 1', 'a long conversation with a key')).reused).toBe(30);
  });

  test('that could not be cleared leave the sequence free for the next call', async () => {
    const sequence = sequenceOf();
    const pool = createSequencePool([sequence]);
    pool.release(await pool.acquire(tokensOf('a'), owner('owner')));
    sequence.clearHistory = () => Promise.reject(new Error('planted'));
    await expect(pool.acquire(tokensOf('a'), owner('key 1'))).rejects.toThrow('planted');
    await expect(pool.acquire(tokensOf('a'), owner('key 1'))).rejects.toThrow('planted');
    expect(await pool.acquire(tokensOf('a'), owner('owner'))).toBe(sequence);
  });
});

function commonLength(one: string, other: string): number {
  let index = 0;
  while (index < Math.min(one.length, other.length) && one[index] === other[index]) index += 1;
  return index;
}
