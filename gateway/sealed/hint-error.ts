/** Refused before anything was proved, so that the answer is a hint, in the clear. */
import { encodeEnvelope } from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import { hintOf, type HintCode } from '../../channel/hint.ts';

export class HintError extends Error {
  override readonly name = 'HintError';
  readonly hint: HintCode;

  constructor(hint: HintCode) {
    super(`hint ${hint}`);
    this.hint = hint;
  }
}

/** The hint that a failure is answered with. @throws the error, if it is no refusal */
export function hintFor(error: unknown): Uint8Array {
  if (error instanceof HintError) return encodeEnvelope({ kind: 'hint', code: error.hint });
  if (error instanceof ChannelError) return encodeEnvelope({ kind: 'hint', code: hintOf(error.code) });
  throw error;
}
