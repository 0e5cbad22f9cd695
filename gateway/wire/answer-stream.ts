/**
 * The way of every streamed answer: the port's parts into a style's text, one after the other. An answer that is not
 * whole is never told as if it were: it ends with the style's own last words for a failure.
 */
import type { LanguageModelV4FinishReason } from '@ai-sdk/provider';
import { ServiceError } from '../../core/errors.ts';
import type { ModelStreamPart } from '../../core/inference/model-port.ts';
import { outwardError, type OutwardError } from '../errors.ts';

/** One style's text of one answer. */
export interface StreamEncoder {
  /** What comes before the first part. */
  begin?(): string;
  /** @returns what can go out now; often nothing. @throws {ServiceError} for what the style has no way to tell */
  encode(part: ModelStreamPart): string;
  /** What comes after the last part of a whole answer. */
  end?(): string;
  /** Nothing comes after it. */
  fail(error: OutwardError): string;
}

/**
 * Never throws: a failure in mid-stream becomes the last words, which is the only way left to tell of it.
 * @param parts the port's stream, from `stream-start` on
 */
export async function* encodeStream(
  encoder: StreamEncoder,
  parts: AsyncIterable<ModelStreamPart>,
): AsyncGenerator<string> {
  try {
    const first = encoder.begin?.() ?? '';
    if (first !== '') yield first;
    const end = new AnswerEnd();
    for await (const part of parts) {
      end.note(part);
      const text = encoder.encode(part);
      if (text !== '') yield text;
    }
    end.assertReached();
    const last = encoder.end?.() ?? '';
    if (last !== '') yield last;
  } catch (error) {
    yield encoder.fail(outwardError(error));
  }
}

/** Looks on at an answer's parts, to know whether it is whole. */
export class AnswerEnd {
  #isReached = false;

  /** @throws what the port's stream ends with instead of a whole answer */
  note(part: ModelStreamPart): void {
    if (part.type === 'error') throw part.error;
    if (part.type !== 'finish') return;
    assertWhole(part);
    this.#isReached = true;
  }

  /** @throws {ServiceError} `engine_failed` where the stream broke off */
  assertReached(): void {
    if (!this.#isReached) throw interrupted();
  }
}

/**
 * No style has a word for an answer that ended because something went wrong: it is a failure there.
 * @throws {ServiceError} `engine_failed`
 */
export function assertWhole({ finishReason }: { readonly finishReason: LanguageModelV4FinishReason }): void {
  const { unified } = finishReason;
  if (unified === 'error') throw new ServiceError('engine_failed', 'The model stopped because of an error.');
  if (unified === 'interrupted') throw interrupted();
}

function interrupted(): ServiceError {
  return new ServiceError('engine_failed', 'The model stopped before its answer was complete.');
}

/** How an answer ends that is whole: `other` is for reasons that have no name at all, and no style's own fits better than its end. */
export type WholeFinish = 'stop' | 'length' | 'tool-calls' | 'content-filter';

export function wholeFinish({ unified }: LanguageModelV4FinishReason): WholeFinish {
  return unified === 'length' || unified === 'tool-calls' || unified === 'content-filter' ? unified : 'stop';
}
