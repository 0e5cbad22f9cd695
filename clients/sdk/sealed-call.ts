/** One sealed call: what is sent, and what comes back of it. */
import type { AnswerReader } from '../../channel/answer-reader.ts';
import { EMPTY } from '../../channel/bytes.ts';
import { ChannelError } from '../../channel/errors.ts';
import type { AnswerHead, CallReference } from '../../channel/head.ts';
import { decodeAnswerHead, encodeCancelHead } from '../../channel/head.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { findJsonObject } from '../../channel/json.ts';
import type { RecordEvent } from '../../channel/record-opener.ts';
import type { PosternErrorCode } from './errors.ts';
import { HintError, PathError, PosternError, TransportError } from './errors.ts';
import { exchange, joinBytes } from './exchange.ts';
import type { Sessions } from './sessions.ts';

/** An abort never comes as an event, but as the error that it is. */
export type AnswerEvent = Exclude<RecordEvent, { readonly type: 'abort' }>;
export type AnswerEvents = AsyncGenerator<AnswerEvent, void>;

export interface SealedCall {
  readonly session: InitiatorSession;
  readonly reference: CallReference;
  readonly answer: AnswerReader;
  /**
   * Sends the call when the first event is asked for, over the path that is the current one then. Ends after `end`.
   * @throws PathError, HintError, PosternError, or the signal's reason
   */
  readonly events: AnswerEvents;
}

/** The gateway answers at once, if only with the header. */
const BEGINS_WITHIN_MS = 10_000;
/** … once it has the body, which a slow network may take long for. */
const SLOWEST_BYTES_PER_MS = 32;

/** @param body empty for none. @throws PosternError, or the signal's reason */
export async function sealCall(
  sessions: Sessions,
  head: Uint8Array,
  body: Uint8Array,
  signal: AbortSignal,
): Promise<SealedCall> {
  const { session, call } = await sessions.openCall(signal);
  if (body.length > session.terms.maxBodyBytes) throw new PosternError('body_too_large');
  const wire = call.request.sealWhole({ before: call.header, head, body });
  return {
    session,
    reference: { sessionId: session.terms.sessionId, callNumber: call.callNumber },
    answer: call.answer,
    events: send(sessions, wire, call.answer, signal),
  };
}

async function* send(
  sessions: Sessions,
  wire: Uint8Array<ArrayBuffer>,
  answer: AnswerReader,
  signal: AbortSignal,
): AnswerEvents {
  const { platform, paths, callOperation, silentForMs } = sessions.options;
  const way = paths.current;
  if (way === undefined) {
    const cause = new TransportError({ wasNeverSent: true });
    throw new PathError('the path broke before the call was sent', { cause });
  }
  const beginsWithinMs = BEGINS_WITHIN_MS + wire.length / SLOWEST_BYTES_PER_MS;
  const { setTimer } = platform;
  try {
    const pieces = exchange({
      transport: way.transport,
      operation: callOperation,
      body: wire,
      signal,
      setTimer,
      beginsWithinMs,
      silentForMs,
    });
    for await (const piece of pieces) {
      paths.answered(way);
      yield* openRecords(answer, piece);
    }
    if (!answer.isOver) throw new PathError('the answer has no end');
  } catch (error) {
    // Whatever happens to the path after the last record is of no interest.
    if (error instanceof PathError && answer.isFinished) return;
    if (error instanceof PathError) paths.broke(way);
    throw error;
  }
}

/** What a piece of an answer holds. @throws HintError, PathError for what is no answer, PosternError */
export function* openRecords(answer: AnswerReader, piece: Uint8Array): Generator<AnswerEvent, void> {
  try {
    for (const event of answer.push(piece)) {
      if (event.type === 'hint') throw new HintError(event.code);
      if (event.type === 'abort') throw abortOf(event.data);
      yield event;
    }
  } catch (error) {
    if (!(error instanceof ChannelError)) throw error;
    throw error.code === 'malformed' ? new PathError('no gateway', { cause: error }) : new PosternError('damaged');
  }
}

const ABORTS: ReadonlyMap<unknown, PosternErrorCode> = new Map([
  ['revoked', 'revoked'],
  ['shutdown', 'gateway_stopped'],
  ['expired', 'session_expired'],
  ['cancelled', 'cancelled'],
]);

function abortOf(data: Uint8Array): PosternError {
  return new PosternError(ABORTS.get(findJsonObject(data)?.['code']) ?? 'gateway_failed');
}

/** The head, which is the first event. @throws as the events do */
export async function takeHead(events: AnswerEvents): Promise<AnswerHead> {
  const first = await events.next();
  if (first.done === true || first.value.type !== 'head') throw new PosternError('damaged');
  try {
    return decodeAnswerHead(first.value.data);
  } catch (error) {
    await events.return();
    throw new PosternError('incompatible', { cause: error });
  }
}

/** What comes next of the body; `undefined` at its end. @throws as the events do */
export async function takeData(events: AnswerEvents): Promise<Uint8Array | undefined> {
  for (;;) {
    const { done, value } = await events.next();
    if (done === true) return undefined;
    if (value.type === 'data') return value.data;
    if (value.type !== 'end') continue;
    settle(events);
    return undefined;
  }
}

/** The body, whole. @throws as the events do, and PosternError if it has more than `maxBytes` */
export async function takeBody(events: AnswerEvents, maxBytes: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for (let data = await takeData(events); data !== undefined; data = await takeData(events)) {
    length += data.length;
    pieces.push(data);
    if (length <= maxBytes) continue;
    await events.return();
    throw new PosternError('incompatible');
  }
  return joinBytes(pieces);
}

/** Lets the transport end by itself, so that its connection is good for another call. */
function settle(events: AnswerEvents): void {
  events.next().catch(() => undefined);
}

/** Asks the gateway to stop a call. What comes of that changes nothing any more. */
export async function cancelCall(sessions: Sessions, { reference, answer }: SealedCall): Promise<void> {
  answer.erase();
  try {
    const { signal } = new AbortController();
    const cancel = await sealCall(sessions, encodeCancelHead(reference), EMPTY, signal);
    await takeHead(cancel.events);
    while ((await takeData(cancel.events)) !== undefined);
  } catch {
    // The gateway stops the call by itself, later.
  }
}
