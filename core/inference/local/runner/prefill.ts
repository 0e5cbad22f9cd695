/**
 * Reads a prompt into a sequence piece by piece, so that a request nobody waits for any more is noticed between two
 * pieces, and so that other sequences get their turn. The engine by itself reads a prompt in one go, however long.
 */
import type { LlamaContextSequence, Token } from 'node-llama-cpp';

const FIRST_PIECE_TOKENS = 128;
/** Pieces below this waste the processor, above it they waste nothing more. */
const MIN_PIECE_TOKENS = 32;
const MAX_PIECE_TOKENS = 2048;
/** How long a piece should take: what a cancelled request may still cost. */
const PIECE_MS = 500;

/**
 * Reads what the sequence does not hold yet, up to a last piece that is small enough for the engine to read when it
 * begins to answer.
 * @throws the signal's reason; what was read until then stays for the next prompt that begins alike
 */
export async function prefill(
  sequence: LlamaContextSequence,
  prompt: readonly Token[],
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  await sequence.adaptStateToTokens([...prompt], false);
  let size = FIRST_PIECE_TOKENS;
  while (prompt.length - sequence.nextTokenIndex > size) {
    const startedAtMs = performance.now();
    const at = sequence.nextTokenIndex;
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(at, at + size));
    signal.throwIfAborted();
    const tookMs = Math.max(1, performance.now() - startedAtMs);
    size = Math.round(Math.min(MAX_PIECE_TOKENS, Math.max(MIN_PIECE_TOKENS, (size * PIECE_MS) / tookMs)));
  }
}
