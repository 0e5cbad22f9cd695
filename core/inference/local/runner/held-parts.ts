/**
 * The parts of an answer that is wanted whole. Two messages carry all of them, where a stream's take one for each token:
 * one with the first piece, since how soon that came is measured where it arrives, and one with the end.
 */
import { isPiece, type ModelStreamPart } from '../../model-port.ts';

export interface HeldParts {
  readonly emit: (part: ModelStreamPart) => void;
  /** Posts what is left: the answer has ended. */
  readonly end: () => void;
}

/** @param post is given the parts in their order, with the fragments of one block put together */
export function holdParts(post: (part: ModelStreamPart) => void): HeldParts {
  let held: ModelStreamPart[] = [];
  let hasPiece = false;
  const end = (): void => {
    const parts = held;
    held = [];
    parts.forEach(post);
  };
  return {
    emit(part) {
      const joined = join(held.at(-1), part);
      if (joined === undefined) held.push(part);
      else held[held.length - 1] = joined;
      if (hasPiece || !isPiece(part)) return;
      hasPiece = true;
      end();
    },
    end,
  };
}

function join(last: ModelStreamPart | undefined, next: ModelStreamPart): ModelStreamPart | undefined {
  const goesOn = last !== undefined && 'delta' in last && 'delta' in next && last.type === next.type;
  return goesOn && last.id === next.id ? { ...next, delta: last.delta + next.delta } : undefined;
}
