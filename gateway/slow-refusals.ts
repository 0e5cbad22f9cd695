/**
 * A prompt that is too long does not get shorter by being sent again, but some agents do nothing else: hundreds of times
 * a minute. After a few refusals a caller waits for each further one, so that its loop costs next to nothing.
 */
import type { CallOwner } from '../core/inference/call-owner.ts';
import { ServiceError } from '../core/errors.ts';
import type { Inference } from '../core/inference/inference.ts';
import { withCalls, type ModelCall } from '../core/inference/model-port.ts';
import type { SetTimer } from '../core/timer.ts';
import { createRateWindow } from './rate-window.ts';

/** Refusals in a minute that come at once. */
export const FREE_REFUSALS = 10;
/** How long each further one takes: less than it takes until a stream begins all the same. */
export const REFUSAL_DELAY_MS = 5000;

interface SlowRefusalOptions {
  readonly setTimer: SetTimer;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

/** The same inference, which is slower to refuse one long prompt after the other. */
export function withSlowRefusals(inference: Inference, { setTimer, elapsed }: SlowRefusalOptions): Inference {
  const refusals = createRateWindow({ limit: FREE_REFUSALS, now: elapsed });
  async function slowly<Result>(
    owner: CallOwner,
    { abortSignal }: ModelCall,
    answer: () => PromiseLike<Result>,
  ): Promise<Result> {
    try {
      return await answer();
    } catch (error) {
      if (!isPromptTooLong(error)) throw error;
      const isLoop = refusals.retryAfterS(owner.name) !== undefined;
      refusals.count(owner.name);
      if (isLoop) await pause(abortSignal, setTimer);
      throw error;
    }
  }
  return {
    ...inference,
    async languageModel(id, owner) {
      const model = await inference.languageModel(id, owner);
      if (owner === undefined) return model;
      return withCalls(model, {
        doStream: (call) => slowly(owner, call, () => model.doStream(call)),
        doGenerate: (call) => slowly(owner, call, () => model.doGenerate(call)),
      });
    },
  };
}

function isPromptTooLong(error: unknown): boolean {
  return error instanceof ServiceError && error.code === 'prompt_too_long';
}

/** Until it is over, or nobody waits any more. */
function pause(signal: AbortSignal | undefined, setTimer: SetTimer): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = (): void => {
      cancel();
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const cancel = setTimer(REFUSAL_DELAY_MS, end);
    signal?.addEventListener('abort', end, { once: true });
  });
}
