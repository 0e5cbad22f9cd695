/**
 * The sequences of a context, each with the tokens that it evaluated last, and which of them a new prompt gets.
 *
 * A sequence keeps what its tokens have in common with the next prompt and evaluates only the rest; what it held
 * beyond that is lost to the conversation that it came from. So a prompt goes where it finds most of itself, unless
 * another conversation would lose too much by it.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';

export interface SequencePool {
  /**
   * The free sequence that suits this prompt best; it is the caller's until released.
   * @throws {RangeError} when none is free: whoever sends the calls keeps to their number
   */
  acquire(prompt: readonly Token[]): LlamaContextSequence;
  release(sequence: LlamaContextSequence): void;
}

/** A conversation that lost its tokens has to evaluate them at its next turn, and then takes them from another. */
const LOSS_WEIGHT = 3;

/** A template ends a prompt a little differently when the answer to it follows. */
const PROMPT_END_TOKENS = 8;

/** The longer a conversation has rested, the less likely it goes on. */
const LOSS_HALF_LIFE_MS = 10 * 60_000;

export function createSequencePool(
  sequences: readonly LlamaContextSequence[],
  nowMs: () => number = () => performance.now(),
): SequencePool {
  const free = sequences.map((sequence) => ({ sequence, sinceMs: nowMs() }));
  const promptTokens = new Map<LlamaContextSequence, number>();
  return {
    acquire(prompt) {
      const held = free.map(({ sequence, sinceMs }) => ({
        tokens: sequence.contextTokens,
        promptTokens: promptTokens.get(sequence) ?? 0,
        restedMs: nowMs() - sinceMs,
      }));
      const [chosen] = free.splice(chooseSequence(prompt, held), 1);
      if (chosen === undefined) throw new RangeError('a call came before a sequence was free');
      promptTokens.set(chosen.sequence, prompt.length);
      return chosen.sequence;
    },
    release: (sequence) => void free.push({ sequence, sinceMs: nowMs() }),
  };
}

export interface HeldTokens {
  readonly tokens: readonly number[];
  /** How many of them were the prompt; the others are the answer to it. */
  readonly promptTokens: number;
  readonly restedMs: number;
}

/**
 * The one with the fewest tokens to evaluate now, and again for whoever loses them; of equals the first.
 * @returns its index; 0 of none
 */
export function chooseSequence(prompt: readonly number[], held: readonly HeldTokens[]): number {
  const costs = held.map(({ tokens, promptTokens, restedMs }) => {
    const common = commonPrefix(prompt, tokens);
    // The same conversation goes on, or is asked again: what it does not repeat (its thoughts, say) nobody misses.
    const goesOn = common >= promptTokens - PROMPT_END_TOKENS;
    const lost = goesOn ? 0 : tokens.length - common;
    return prompt.length - common + lost * LOSS_WEIGHT * 0.5 ** (restedMs / LOSS_HALF_LIFE_MS);
  });
  return Math.max(0, costs.indexOf(Math.min(...costs)));
}

function commonPrefix(one: readonly number[], other: readonly number[]): number {
  const end = Math.min(one.length, other.length);
  let index = 0;
  while (index < end && one[index] === other[index]) index += 1;
  return index;
}
