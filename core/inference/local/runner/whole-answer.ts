/** An answer that is wanted whole: one message carries it, where a stream's take one for each token. */
import {
  createCollector,
  isPiece,
  withGenerationMs,
  type ModelAnswer,
  type ModelStreamPart,
} from '../../model-port.ts';

export interface WholeAnswer {
  readonly emit: (part: ModelStreamPart) => void;
  /** Once `finish` was emitted, with how long writing it took. @throws {TypeError} before */
  readonly take: () => ModelAnswer;
}

/** @param now in milliseconds that never go back */
export function collectWhole(now: () => number): WholeAnswer {
  const add = createCollector();
  let firstPieceAt: number | undefined;
  let answer: ModelAnswer | undefined;
  return {
    emit(part) {
      if (isPiece(part)) firstPieceAt ??= now();
      const whole = add(part);
      if (whole === undefined) return;
      answer = firstPieceAt === undefined ? whole : withGenerationMs(whole, now() - firstPieceAt);
    },
    take() {
      if (answer === undefined) throw new TypeError('an answer was taken before its end');
      return answer;
    },
  };
}
