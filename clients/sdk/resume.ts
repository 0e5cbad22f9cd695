/**
 * Picks an answer up again that was cut off: a new call, in any session of the device, asks for the records of the old
 * one from the next index on, and they go on into the reader that has the key.
 */
import { EMPTY } from '../../channel/bytes.ts';
import { encodeAttachHead } from '../../channel/head.ts';
import { HintError, isUnreached, PathError, PosternError } from './errors.ts';
import { pause } from './platform.ts';
import type { AnswerEvents, SealedCall } from './sealed-call.ts';
import { openRecords, sealCall, takeHead } from './sealed-call.ts';
import type { Sessions } from './sessions.ts';

/** Before each attempt that follows one without a record. Together about as long as the gateway keeps the records. */
const PAUSES_MS = [0, 500, 1000, 2000, 4000, 8000, 16_000, 32_000];

/**
 * The events of an answer, over as many attached calls as it takes. If nothing has come of it, there is nothing to pick
 * up, and the error is thrown on.
 * @param events those of the call itself, or of one that is attached to it
 */
export async function* resumed(
  sessions: Sessions,
  call: SealedCall,
  events: AnswerEvents,
  signal: AbortSignal,
): AnswerEvents {
  let source = events;
  for (let failures = 0; ; failures++) {
    const before = call.answer.nextIndex;
    try {
      yield* source;
      return;
    } catch (error) {
      if (!isPassing(error) || !call.answer.hasStarted || call.answer.isOver) throw error;
      if (call.answer.nextIndex > before) failures = 0;
      const delayMs = PAUSES_MS[failures];
      if (delayMs === undefined) throw new PosternError('truncated', { cause: error });
      await pause(sessions.options.platform.setTimer, delayMs, signal);
    }
    source = attached(sessions, call, signal);
  }
}

/** Worth another attempt, over another path or in another session. */
function isPassing(error: unknown): boolean {
  if (error instanceof PosternError) return isUnreached(error) || error.code === 'busy';
  return error instanceof PathError || error instanceof HintError;
}

/** The rest of the call's events, as one attached call brings them. @throws PosternError `records_gone`, and others */
export async function* attached(sessions: Sessions, call: SealedCall, signal: AbortSignal): AnswerEvents {
  const head = encodeAttachHead(call.reference, call.answer.nextIndex);
  const attach = await sealCall(sessions, head, EMPTY, signal);
  try {
    const { status } = await takeHead(attach.events);
    if (status !== 200) throw new PosternError(status === 410 ? 'records_gone' : 'incompatible');
    call.answer.attach();
    for await (const event of attach.events) {
      if (event.type === 'data') yield* openRecords(call.answer, event.data);
    }
  } catch (error) {
    if (error instanceof HintError) sessions.heed(error, attach.session);
    throw error;
  }
  if (!call.answer.isOver) throw new PathError('the records have no end');
}
