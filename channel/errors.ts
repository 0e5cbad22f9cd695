/**
 * The failures that the channel reports, as one closed union of codes. `TypeError` and `RangeError` are not in here:
 * they mean that our own code misused this folder.
 *
 * The message is the code and nothing more, because what exactly was wrong with a peer's bytes is nobody's business:
 * a peer that learns which check failed has an oracle. Distinct causes of one cryptographic failure share one code.
 */
export type ChannelErrorCode =
  /** A handshake message was not accepted, for whatever reason: unknown device, wrong key, changed bytes. */
  | 'handshake_refused'
  /** No live session has this id: never made, expired, retired or revoked. */
  | 'unknown_session'
  /** The call number is out of range or was spent by an earlier call. */
  | 'call_number'
  /** The session has as many calls open as it may have. */
  | 'too_many_calls'
  /** The bytes are no envelope of this protocol. */
  | 'malformed'
  /** A record did not authenticate or broke the rules of the stream; the call is dead and its keys are erased. */
  | 'record_refused'
  /** The transport ended before the FIN record: the peer did not finish, or somebody cut the wire. */
  | 'truncated';

/** The peer, or whoever is between, broke the protocol. */
export class ChannelError extends Error {
  override readonly name = 'ChannelError';
  readonly code: ChannelErrorCode;

  constructor(code: ChannelErrorCode) {
    super(code);
    this.code = code;
  }
}
