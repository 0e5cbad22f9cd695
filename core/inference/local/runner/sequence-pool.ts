/**
 * The sequences of a context, each with the tokens that it evaluated last, and which of them a new prompt gets.
 *
 * A sequence keeps what its tokens have in common with the next prompt and evaluates only the rest; what it held
 * beyond that is lost to the conversation that it came from. So a prompt goes where it finds most of itself, unless
 * another conversation would lose too much by it.
 *
 * Tokens are found again by the owner who had them evaluated, and by nobody else: how much of a prompt was there already
 * shows in its answer and in how soon that comes, so whoever finds others' tokens can guess, word by word, what they said.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';
import { SERVICE, type CallOwner } from '../../call-owner.ts';

export interface SequencePool {
  /**
   * The free sequence that suits this prompt best, without a token that another owner left in it; it is the caller's
   * until released.
   * @throws {RangeError} when none is free: whoever sends the calls keeps to their number
   */
  acquire(prompt: readonly Token[], owner: CallOwner): Promise<LlamaContextSequence>;
  release(sequence: LlamaContextSequence): void;
}

/** A conversation that lost its tokens has to evaluate them at its next turn, and then takes them from another. */
const LOSS_WEIGHT = 3;

/** What a guest takes from others has to be worth a thousand times as much, so it takes from guests where it can. */
const LOSS_WEIGHT_TO_GUEST = 1000 * LOSS_WEIGHT;

/** A template ends a prompt a little differently when the answer to it follows. */
const PROMPT_END_TOKENS = 8;

/** The longer a conversation has rested, the less likely it goes on. */
const LOSS_HALF_LIFE_MS = 10 * 60_000;

/** How a sequence was used last. */
interface LastUse {
  readonly owner: CallOwner;
  readonly promptTokens: number;
}

const UNUSED: LastUse = { owner: SERVICE, promptTokens: 0 };

export function createSequencePool(
  sequences: readonly LlamaContextSequence[],
  nowMs: () => number = () => performance.now(),
): SequencePool {
  const free = sequences.map((sequence) => ({ sequence, sinceMs: nowMs() }));
  const lastUses = new Map<LlamaContextSequence, LastUse>();
  const lastUseOf = (sequence: LlamaContextSequence): LastUse => lastUses.get(sequence) ?? UNUSED;
  return {
    async acquire(prompt, owner) {
      const held = free.map(({ sequence, sinceMs }) => ({
        tokens: sequence.contextTokens,
        promptTokens: lastUseOf(sequence).promptTokens,
        restedMs: nowMs() - sinceMs,
        ...relation(owner, lastUseOf(sequence).owner),
      }));
      const [chosen] = free.splice(chooseSequence(prompt, held), 1);
      if (chosen === undefined) throw new RangeError('a call came before a sequence was free');
      const { sequence } = chosen;
      try {
        if (lastUseOf(sequence).owner.name !== owner.name) await sequence.clearHistory();
      } catch (error) {
        free.push(chosen);
        throw error;
      }
      lastUses.set(sequence, { owner, promptTokens: prompt.length });
      return sequence;
    },
    release: (sequence) => void free.push({ sequence, sinceMs: nowMs() }),
  };
}

export interface HeldTokens {
  readonly tokens: readonly number[];
  /** How many of them were the prompt; the others are the answer to it. */
  readonly promptTokens: number;
  readonly restedMs: number;
  /** Another owner's: none of them is of use to the prompt. */
  readonly isForeign?: boolean;
  /** How many tokens to evaluate one of them is worth that is lost. */
  readonly lossWeight?: number;
}

function relation(owner: CallOwner, holder: CallOwner): Pick<HeldTokens, 'isForeign' | 'lossWeight'> {
  if (holder.name === owner.name) return {};
  if (holder.isGuest === owner.isGuest) return { isForeign: true };
  return { isForeign: true, lossWeight: owner.isGuest ? LOSS_WEIGHT_TO_GUEST : 0 };
}

/**
 * The one with the fewest tokens to evaluate now, and again for whoever loses them; of equals the first.
 * @returns its index; 0 of none
 */
export function chooseSequence(prompt: readonly number[], held: readonly HeldTokens[]): number {
  const costs = held.map(({ tokens, promptTokens, restedMs, isForeign = false, lossWeight = LOSS_WEIGHT }) => {
    const common = isForeign ? 0 : commonPrefix(prompt, tokens);
    // The same conversation goes on, or is asked again: what it does not repeat (its thoughts, say) nobody misses.
    const goesOn = !isForeign && common >= promptTokens - PROMPT_END_TOKENS;
    const lost = goesOn ? 0 : tokens.length - common;
    return prompt.length - common + lost * lossWeight * 0.5 ** (restedMs / LOSS_HALF_LIFE_MS);
  });
  return Math.max(0, costs.indexOf(Math.min(...costs)));
}

function commonPrefix(one: readonly number[], other: readonly number[]): number {
  const end = Math.min(one.length, other.length);
  let index = 0;
  while (index < end && one[index] === other[index]) index += 1;
  return index;
}
