/**
 * The outermost bytes of every request and answer, the same on HTTP and through a relay: a version, a kind, and what
 * that kind has.
 *
 *     kind                          after 0x01
 *     session request    01         noise message 1
 *     session answer     02         noise message 2
 *     call request       03         sid 16 ‖ call number u32 ‖ record*
 *     call answer        04         sid 16 ‖ call number u32 ‖ record*
 *     invite request     11         inviteId 16 ‖ noise message 1
 *     invite answer      12         noise message 2
 *     discovery open     20         challenge 16 ‖ LP16(JSON about the device)
 *     discovery opened   21         Yb 32
 *     discovery prove    22         challenge 16 ‖ Ya 32 ‖ noise message 1
 *     discovery proved   23         noise message 2
 *     discovery cancel   24         challenge 16
 *     hint               7f         u16 code
 *
 * Nothing here is authenticated by itself. A hint least of all: it says what to try next, never what is so.
 */
import { concatBytes, encodeU16, encodeU32, lengthPrefixed, viewOf } from './bytes.ts';
import { ChannelError } from './errors.ts';
import type { SessionId } from './keys.ts';
import { asSessionId, ID_BYTES } from './keys.ts';

/** The version of the protocol. A device that was paired with one never accepts a lower one. */
export const PROTOCOL_VERSION = 1;

const KIND = {
  sessionRequest: 0x01,
  sessionAnswer: 0x02,
  callRequest: 0x03,
  callAnswer: 0x04,
  inviteRequest: 0x11,
  inviteAnswer: 0x12,
  discoveryOpen: 0x20,
  discoveryOpened: 0x21,
  discoveryProve: 0x22,
  discoveryProved: 0x23,
  discoveryCancel: 0x24,
  hint: 0x7f,
} as const;

/** A CPace share: an encoded Ristretto255 element. */
const SHARE_BYTES = 32;

export type Envelope =
  | { readonly kind: 'sessionRequest' | 'sessionAnswer'; readonly noise: Uint8Array }
  | { readonly kind: 'inviteRequest'; readonly inviteId: Uint8Array; readonly noise: Uint8Array }
  | { readonly kind: 'inviteAnswer' | 'discoveryProved'; readonly noise: Uint8Array }
  | { readonly kind: 'discoveryOpen'; readonly challenge: Uint8Array; readonly about: Uint8Array }
  | { readonly kind: 'discoveryCancel'; readonly challenge: Uint8Array }
  | { readonly kind: 'discoveryOpened'; readonly share: Uint8Array }
  | {
      readonly kind: 'discoveryProve';
      readonly challenge: Uint8Array;
      readonly share: Uint8Array;
      readonly noise: Uint8Array;
    }
  | { readonly kind: 'hint'; readonly code: number };

export function encodeEnvelope(envelope: Envelope): Uint8Array {
  return concatBytes(Uint8Array.of(PROTOCOL_VERSION, KIND[envelope.kind]), encodeContent(envelope));
}

function encodeContent(envelope: Envelope): Uint8Array {
  switch (envelope.kind) {
    case 'inviteRequest':
      return concatBytes(exactly(envelope.inviteId, ID_BYTES), envelope.noise);
    case 'discoveryOpen':
      return concatBytes(exactly(envelope.challenge, ID_BYTES), lengthPrefixed(envelope.about));
    case 'discoveryCancel':
      return exactly(envelope.challenge, ID_BYTES);
    case 'discoveryOpened':
      return exactly(envelope.share, SHARE_BYTES);
    case 'discoveryProve':
      return concatBytes(exactly(envelope.challenge, ID_BYTES), exactly(envelope.share, SHARE_BYTES), envelope.noise);
    case 'hint':
      return encodeU16(envelope.code);
    default:
      return envelope.noise;
  }
}

function exactly(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length !== length) throw new RangeError(`a field of ${length} bytes was given ${bytes.length}`);
  return bytes;
}

/** Any envelope but a call, whose records are read as they come. @throws ChannelError `malformed` */
export function decodeEnvelope(bytes: Uint8Array): Envelope {
  const [version, kind] = bytes;
  if (version !== PROTOCOL_VERSION) throw malformed();
  const content = new Fields(bytes.subarray(2));
  switch (kind) {
    case KIND.sessionRequest:
      return { kind: 'sessionRequest', noise: content.rest() };
    case KIND.sessionAnswer:
      return { kind: 'sessionAnswer', noise: content.rest() };
    case KIND.inviteRequest:
      return { kind: 'inviteRequest', inviteId: content.take(ID_BYTES), noise: content.rest() };
    case KIND.inviteAnswer:
      return { kind: 'inviteAnswer', noise: content.rest() };
    case KIND.discoveryOpen:
      return { kind: 'discoveryOpen', challenge: content.take(ID_BYTES), about: content.takePrefixed() };
    case KIND.discoveryOpened:
      return { kind: 'discoveryOpened', share: content.takeLast(SHARE_BYTES) };
    case KIND.discoveryProve:
      return { kind: 'discoveryProve', ...content.takeProof() };
    case KIND.discoveryProved:
      return { kind: 'discoveryProved', noise: content.rest() };
    case KIND.discoveryCancel:
      return { kind: 'discoveryCancel', challenge: content.takeLast(ID_BYTES) };
    case KIND.hint:
      return { kind: 'hint', code: viewOf(content.takeLast(2)).getUint16(0) };
    default:
      throw malformed();
  }
}

/** The fields of an envelope, in order. */
class Fields {
  #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  take(length: number): Uint8Array {
    if (this.#bytes.length < length) throw malformed();
    const field = this.#bytes.subarray(0, length);
    this.#bytes = this.#bytes.subarray(length);
    return field;
  }

  rest(): Uint8Array {
    return this.take(this.#bytes.length);
  }

  takeLast(length: number): Uint8Array {
    if (this.#bytes.length !== length) throw malformed();
    return this.rest();
  }

  takePrefixed(): Uint8Array {
    const length = viewOf(this.take(2)).getUint16(0);
    return this.takeLast(length);
  }

  takeProof(): { challenge: Uint8Array; share: Uint8Array; noise: Uint8Array } {
    return { challenge: this.take(ID_BYTES), share: this.take(SHARE_BYTES), noise: this.rest() };
  }
}

/** Which call of which session the records belong to. The number is not authenticated until record 0 has opened. */
export interface CallHeader {
  readonly sessionId: SessionId;
  readonly callNumber: number;
}

/** Version, kind, sid and call number: what stands before the records of a call. */
export const CALL_HEADER_BYTES = 2 + ID_BYTES + 4;

export function encodeCallHeader(
  kind: 'callRequest' | 'callAnswer',
  { sessionId, callNumber }: CallHeader,
): Uint8Array {
  return concatBytes(Uint8Array.of(PROTOCOL_VERSION, KIND[kind]), sessionId, encodeU32(callNumber));
}

/** @throws ChannelError `malformed` unless these are the 22 bytes of a call header of this kind */
export function decodeCallHeader(kind: 'callRequest' | 'callAnswer', bytes: Uint8Array): CallHeader {
  if (bytes.length !== CALL_HEADER_BYTES || bytes[0] !== PROTOCOL_VERSION || bytes[1] !== KIND[kind]) throw malformed();
  return {
    sessionId: asSessionId(new Uint8Array(bytes.subarray(2, 2 + ID_BYTES))),
    callNumber: viewOf(bytes).getUint32(2 + ID_BYTES),
  };
}

function malformed(): ChannelError {
  return new ChannelError('malformed');
}
