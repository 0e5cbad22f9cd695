/** The answer to one call as the initiator gets it: bytes in; a hint, or the records of the answer, out. */
import { BytePrefix } from './byte-prefix.ts';
import { equalBytes } from './bytes.ts';
import { CALL_HEADER_BYTES, decodeEnvelope } from './envelope.ts';
import { ChannelError } from './errors.ts';
import type { RecordEvent, RecordOpener } from './record-opener.ts';

export type AnswerEvent = RecordEvent | { readonly type: 'hint'; readonly code: number };

/** Version, kind, u16 code. */
const HINT_BYTES = 4;

export class AnswerReader {
  readonly #expectedHeader: Uint8Array;
  readonly #records: RecordOpener;
  readonly #header = new BytePrefix(CALL_HEADER_BYTES);
  /** A hint ends the answer. */
  #hasHint = false;
  /** The header came, or is not to come any more. */
  #isInRecords = false;

  constructor(expectedHeader: Uint8Array, records: RecordOpener) {
    this.#expectedHeader = expectedHeader;
    this.#records = records;
  }

  /** Something has come of it. */
  get hasStarted(): boolean {
    return this.#isInRecords || this.#header.arrived.length > 0;
  }

  /** The index of the record that is to come next. */
  get nextIndex(): number {
    return this.#records.nextIndex;
  }

  /** All of it was read. */
  get isFinished(): boolean {
    return this.#records.isFinished;
  }

  /** Nothing more can be read: all of it was, or it broke the rules, or it was erased. */
  get isOver(): boolean {
    return this.#hasHint || this.#records.isOver;
  }

  /** From now on come the bare records from `nextIndex` on, as an attached call brings them. */
  attach(): void {
    this.#isInRecords = true;
    this.#records.forgetPartialRecord();
  }

  /** See `RecordOpener.push`. @throws ChannelError */
  *push(bytes: Uint8Array): Generator<AnswerEvent> {
    if (this.#hasHint) throw new ChannelError('malformed');
    if (this.#isInRecords) {
      yield* this.#records.push(bytes);
      return;
    }
    const rest = this.#header.take(bytes);
    if (this.#startsAsExpected()) {
      this.#isInRecords = this.#header.complete !== undefined;
      if (this.#isInRecords) yield* this.#records.push(rest);
      return;
    }
    this.#records.erase();
    const { arrived } = this.#header;
    if (arrived.length < HINT_BYTES) return;
    const envelope = decodeEnvelope(arrived);
    if (envelope.kind !== 'hint') throw new ChannelError('malformed');
    this.#hasHint = true;
    yield { type: 'hint', code: envelope.code };
  }

  /** The transport has ended. @throws ChannelError `truncated` if the answer has not */
  end(): void {
    if (!this.#hasHint) this.#records.end();
  }

  erase(): void {
    this.#records.erase();
  }

  /** An answer to another call is no answer. */
  #startsAsExpected(): boolean {
    const { arrived } = this.#header;
    return equalBytes(arrived, this.#expectedHeader.subarray(0, arrived.length));
  }
}
