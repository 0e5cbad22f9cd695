/**
 * The frames between a relay and those who connect to it: one in each binary WebSocket message.
 *
 *     frame : type(1) ‖ flags(1) ‖ stream(u32) ‖ payload       big-endian; stream 0 is the connection itself
 *
 *     01 HELLO       relay -> peer     nonce 32 ‖ u64 timeMs ‖ LP16 origin ‖ u32 connWindow ‖ u32 streamWindow ‖ u16 maxStreams
 *     02 REGISTER    gateway -> relay  GR 32 ‖ u64 epoch ‖ u16 caps ‖ LP16 admission ‖ sig 64
 *     03 REGISTERED  relay -> gateway  rid 15 ‖ u32 leaseSec ‖ LP16 nodeName
 *     04 ALLOW       gateway -> relay  n × (tag 16 ‖ u32 expMinutes ‖ class 1), n >= 1
 *     05 DENY        gateway -> relay  n × tag 16; n = 0 means all of them
 *     06 JOIN        client -> relay   rid 15 ‖ tag 16
 *     07 JOINED      relay -> client   u16 maxStreams ‖ u32 connWindow ‖ u32 streamWindow ‖ u32 bytesPerSec (0: no limit)
 *     10 OPEN        both ways         op(1) ‖ connTag 8, which only the relay adds
 *     11 DATA        both ways         flags bit 0 is END (half close); empty only with END
 *     12 WINDOW      both ways         u32 credit in bytes, for the stream or, on stream 0, the connection
 *     13 RESET       both ways         u16 code
 *     14 PING, 15 PONG                 8 bytes, echoed
 *     16 GOAWAY      relay -> peer     u16 code ‖ u32 minMs ‖ u32 spreadMs ‖ LP16 url
 *     17 ERROR       both ways         u16 code
 *
 * A frame has one encoding. What is longer, shorter, out of its bounds or has a flag that is not named here is refused,
 * and nothing of it is acted on. Nothing here is secret, and nothing but the registration is authenticated.
 */
import { FieldReader, FieldWriter, malformed } from './fields.ts';

/** The WebSocket subprotocol. */
export const SUBPROTOCOL = 'svc-relay.v1';

export const HEADER_BYTES = 6;
export const MAX_PAYLOAD_BYTES = 32 * 1024;
/** Also what a WebSocket message may hold at most. */
export const MAX_FRAME_BYTES = HEADER_BYTES + MAX_PAYLOAD_BYTES;
/** Before a peer has said who it is. */
export const MAX_GREETING_BYTES = 256;

export const NONCE_BYTES = 32;
export const ROUTING_ID_BYTES = 15;
export const TAG_BYTES = 16;
export const CONNECTION_TAG_BYTES = 8;
const KEY_BYTES = 32;
const SIGNATURE_BYTES = 64;
const PING_BYTES = 8;
const ALLOWANCE_BYTES = TAG_BYTES + 5;

/** What one frame holds of each. */
export const MAX_ALLOWANCES = Math.floor(MAX_PAYLOAD_BYTES / ALLOWANCE_BYTES);
export const MAX_DENIALS = Math.floor(MAX_PAYLOAD_BYTES / TAG_BYTES);
/** Leaves room for the rest of REGISTER within MAX_GREETING_BYTES. */
export const MAX_ADMISSION_BYTES = 128;
const MAX_TEXT_BYTES = 255;
const MAX_NODE_NAME_BYTES = 64;
/** Windows and credits fit a signed 32-bit number. */
const MAX_WINDOW_BYTES = 0x7fff_ffff;
const MAX_GOAWAY_MS = 3_600_000;

const TYPE = {
  hello: 0x01,
  register: 0x02,
  registered: 0x03,
  allow: 0x04,
  deny: 0x05,
  join: 0x06,
  joined: 0x07,
  open: 0x10,
  data: 0x11,
  window: 0x12,
  reset: 0x13,
  ping: 0x14,
  pong: 0x15,
  goaway: 0x16,
  error: 0x17,
} as const;

const END_FLAG = 1;

/** What a tag opens: a paired device's calls, pairing alone, or the gateway's own probe of its way here. */
export const TAG_CLASS = { device: 0, pairing: 1, probe: 2 } as const;
export type TagClass = keyof typeof TAG_CLASS;

export interface Allowance {
  readonly tag: Uint8Array;
  /** Minutes since 1970; over when that minute begins. */
  readonly expiresAtMinute: number;
  readonly tagClass: TagClass;
}

/** Windows in bytes: how much may be sent before the other side grants more. */
export interface Windows {
  readonly connectionWindow: number;
  readonly streamWindow: number;
  readonly maxStreams: number;
}

/** What a gateway says of itself and proves; the signature covers it, see `registrationMessage`. */
export interface Registration {
  /** GR, Ed25519. */
  readonly publicKey: Uint8Array;
  /** Higher than in every registration before. */
  readonly epoch: number;
  readonly caps: number;
  /** Empty, or an operator's voucher. */
  readonly admission: Uint8Array;
}

/** Bytes in a decoded frame are views of the message that they came in. */
export type Frame =
  | ({ readonly type: 'hello'; readonly nonce: Uint8Array; readonly timeMs: number; readonly origin: string } & Windows)
  | ({ readonly type: 'register'; readonly signature: Uint8Array } & Registration)
  | {
      readonly type: 'registered';
      readonly routingId: Uint8Array;
      readonly leaseSeconds: number;
      readonly nodeName: string;
    }
  | { readonly type: 'allow'; readonly allowances: readonly Allowance[] }
  | { readonly type: 'deny'; readonly tags: readonly Uint8Array[] }
  | { readonly type: 'join'; readonly routingId: Uint8Array; readonly tag: Uint8Array }
  | ({ readonly type: 'joined'; readonly bytesPerSecond: number } & Windows)
  | { readonly type: 'open'; readonly stream: number; readonly op: number; readonly connectionTag?: Uint8Array }
  | { readonly type: 'data'; readonly stream: number; readonly bytes: Uint8Array; readonly isEnd: boolean }
  | { readonly type: 'window'; readonly stream: number; readonly credit: number }
  | { readonly type: 'reset'; readonly stream: number; readonly code: number }
  | { readonly type: 'ping' | 'pong'; readonly bytes: Uint8Array }
  | {
      readonly type: 'goaway';
      readonly code: number;
      readonly minMs: number;
      readonly spreadMs: number;
      readonly url: string;
    }
  | { readonly type: 'error'; readonly code: number };

/** @throws RelayError `protocol` for anything but one whole frame within its bounds */
export function decodeFrame(bytes: Uint8Array): Frame {
  if (bytes.length < HEADER_BYTES || bytes.length > MAX_FRAME_BYTES) throw malformed('its length');
  const header = new FieldReader(bytes, 0);
  const [type, flags, stream] = [header.u8(), header.u8(), header.u32()];
  if (flags !== 0 && !(type === TYPE.data && flags === END_FLAG)) throw malformed('an unknown flag');
  const fields = new FieldReader(bytes, HEADER_BYTES);
  const frame = isStreamType(type) ? decodeStreamFrame(type, flags, stream, fields) : decodeControl(type, fields);
  if (frame === undefined) throw malformed('an unknown type');
  if ('stream' in frame ? frame.stream === 0 && frame.type !== 'window' : stream !== 0) throw malformed('its stream');
  fields.end();
  return frame;
}

function isStreamType(type: number): boolean {
  return type >= TYPE.open && type <= TYPE.reset;
}

function decodeStreamFrame(type: number, flags: number, stream: number, fields: FieldReader): Frame | undefined {
  switch (type) {
    case TYPE.open: {
      const op = fields.u8();
      if (fields.left === 0) return { type: 'open', stream, op };
      return { type: 'open', stream, op, connectionTag: fields.bytes(CONNECTION_TAG_BYTES) };
    }
    case TYPE.data: {
      const isEnd = flags === END_FLAG;
      if (fields.left === 0 && !isEnd) throw malformed('no data');
      return { type: 'data', stream, bytes: fields.bytes(fields.left), isEnd };
    }
    case TYPE.window:
      return { type: 'window', stream, credit: within(fields.u32(), 1, MAX_WINDOW_BYTES) };
    case TYPE.reset:
      return { type: 'reset', stream, code: fields.u16() };
    default:
      return undefined;
  }
}

function decodeControl(type: number, fields: FieldReader): Frame | undefined {
  switch (type) {
    case TYPE.hello:
      return decodeHello(fields);
    case TYPE.register:
      return {
        type: 'register',
        publicKey: fields.bytes(KEY_BYTES),
        epoch: fields.u53(),
        caps: fields.u16(),
        admission: fields.prefixed(MAX_ADMISSION_BYTES),
        signature: fields.bytes(SIGNATURE_BYTES),
      };
    case TYPE.registered:
      return {
        type: 'registered',
        routingId: fields.bytes(ROUTING_ID_BYTES),
        leaseSeconds: fields.u32(),
        nodeName: fields.text(MAX_NODE_NAME_BYTES),
      };
    case TYPE.allow:
      return { type: 'allow', allowances: several(fields, ALLOWANCE_BYTES, 1, decodeAllowance) };
    case TYPE.deny:
      return { type: 'deny', tags: several(fields, TAG_BYTES, 0, (one) => one.bytes(TAG_BYTES)) };
    case TYPE.join:
      return { type: 'join', routingId: fields.bytes(ROUTING_ID_BYTES), tag: fields.bytes(TAG_BYTES) };
    case TYPE.joined:
      return decodeJoined(fields);
    case TYPE.ping:
    case TYPE.pong:
      return { type: type === TYPE.ping ? 'ping' : 'pong', bytes: fields.bytes(PING_BYTES) };
    case TYPE.goaway:
      return {
        type: 'goaway',
        code: fields.u16(),
        minMs: within(fields.u32(), 0, MAX_GOAWAY_MS),
        spreadMs: within(fields.u32(), 0, MAX_GOAWAY_MS),
        url: fields.text(MAX_TEXT_BYTES),
      };
    case TYPE.error:
      return { type: 'error', code: fields.u16() };
    default:
      return undefined;
  }
}

function decodeHello(fields: FieldReader): Frame {
  return {
    type: 'hello',
    nonce: fields.bytes(NONCE_BYTES),
    timeMs: fields.u53(),
    origin: fields.text(MAX_TEXT_BYTES),
    connectionWindow: within(fields.u32(), 1, MAX_WINDOW_BYTES),
    streamWindow: within(fields.u32(), 1, MAX_WINDOW_BYTES),
    maxStreams: within(fields.u16(), 1, 0xffff),
  };
}

function decodeJoined(fields: FieldReader): Frame {
  return {
    type: 'joined',
    maxStreams: within(fields.u16(), 1, 0xffff),
    connectionWindow: within(fields.u32(), 1, MAX_WINDOW_BYTES),
    streamWindow: within(fields.u32(), 1, MAX_WINDOW_BYTES),
    bytesPerSecond: fields.u32(),
  };
}

function decodeAllowance(fields: FieldReader): Allowance {
  const tag = fields.bytes(TAG_BYTES);
  const expiresAtMinute = fields.u32();
  return { tag, expiresAtMinute, tagClass: classOf(fields.u8()) };
}

function classOf(code: number): TagClass {
  if (code === TAG_CLASS.device) return 'device';
  if (code === TAG_CLASS.pairing) return 'pairing';
  if (code === TAG_CLASS.probe) return 'probe';
  throw malformed('an unknown class of tags');
}

function several<Value>(
  fields: FieldReader,
  size: number,
  least: number,
  decode: (fields: FieldReader) => Value,
): readonly Value[] {
  const count = fields.left / size;
  if (!Number.isInteger(count) || count < least) throw malformed('a list is cut');
  return Array.from({ length: count }, () => decode(fields));
}

function within(value: number, least: number, most: number): number {
  if (value < least || value > most) throw malformed('a number is out of its bounds');
  return value;
}

/** @throws RangeError for what `decodeFrame` would refuse, or would read as something else */
export function encodeFrame(frame: Frame): Uint8Array {
  switch (frame.type) {
    case 'hello':
      return build(frame, NONCE_BYTES + 20 + frame.origin.length, (fields) =>
        fields
          .fixed(frame.nonce, NONCE_BYTES)
          .u53(frame.timeMs)
          .text(frame.origin)
          .u32(frame.connectionWindow)
          .u32(frame.streamWindow)
          .u16(frame.maxStreams),
      );
    case 'register':
      return build(frame, KEY_BYTES + 12 + frame.admission.length + SIGNATURE_BYTES, (fields) =>
        fields
          .fixed(frame.publicKey, KEY_BYTES)
          .u53(frame.epoch)
          .u16(frame.caps)
          .prefixed(frame.admission)
          .fixed(frame.signature, SIGNATURE_BYTES),
      );
    case 'registered':
      return build(frame, ROUTING_ID_BYTES + 6 + frame.nodeName.length, (fields) =>
        fields.fixed(frame.routingId, ROUTING_ID_BYTES).u32(frame.leaseSeconds).text(frame.nodeName),
      );
    case 'allow':
      return build(frame, frame.allowances.length * ALLOWANCE_BYTES, (fields) => {
        for (const { tag, expiresAtMinute, tagClass } of frame.allowances)
          fields.fixed(tag, TAG_BYTES).u32(expiresAtMinute).u8(TAG_CLASS[tagClass]);
      });
    case 'deny':
      return build(frame, frame.tags.length * TAG_BYTES, (fields) => {
        for (const tag of frame.tags) fields.fixed(tag, TAG_BYTES);
      });
    case 'join':
      return build(frame, ROUTING_ID_BYTES + TAG_BYTES, (fields) =>
        fields.fixed(frame.routingId, ROUTING_ID_BYTES).fixed(frame.tag, TAG_BYTES),
      );
    case 'joined':
      return build(frame, 14, (fields) =>
        fields.u16(frame.maxStreams).u32(frame.connectionWindow).u32(frame.streamWindow).u32(frame.bytesPerSecond),
      );
    case 'goaway':
      return build(frame, 12 + frame.url.length, (fields) =>
        fields.u16(frame.code).u32(frame.minMs).u32(frame.spreadMs).text(frame.url),
      );
    case 'ping':
    case 'pong':
      return build(frame, PING_BYTES, (fields) => fields.fixed(frame.bytes, PING_BYTES));
    case 'error':
      return build(frame, 2, (fields) => fields.u16(frame.code));
    default:
      return encodeStreamFrame(frame);
  }
}

function encodeStreamFrame(frame: Extract<Frame, { readonly stream: number }>): Uint8Array {
  switch (frame.type) {
    case 'open':
      return build(frame, 1 + (frame.connectionTag?.length ?? 0), (fields) => {
        fields.u8(frame.op);
        if (frame.connectionTag !== undefined) fields.fixed(frame.connectionTag, CONNECTION_TAG_BYTES);
      });
    case 'data':
      return build(frame, frame.bytes.length, (fields) => fields.bytes(frame.bytes));
    case 'window':
      return build(frame, 4, (fields) => fields.u32(frame.credit));
    default:
      return build(frame, 2, (fields) => fields.u16(frame.code));
  }
}

/** Writes a frame, and reads back what is not data: so nothing that is refused elsewhere ever leaves here. */
function build(frame: Frame, payloadBytes: number, fill: (fields: FieldWriter) => unknown): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + payloadBytes);
  const flags = frame.type === 'data' && frame.isEnd ? END_FLAG : 0;
  fill(
    new FieldWriter(bytes, 0)
      .u8(TYPE[frame.type])
      .u8(flags)
      .u32('stream' in frame ? frame.stream : 0),
  );
  try {
    decodeFrame(bytes);
  } catch (error) {
    throw new RangeError('these fields make no frame', { cause: error });
  }
  return bytes;
}

/**
 * The stream of a whole and well-formed DATA frame, or 0: what `decodeFrame` would find, for those who pass a million of
 * them on and look at nothing else.
 */
export function dataStream(bytes: Uint8Array): number {
  const { 0: type, 1: flags = 0, 2: a = 0, 3: b = 0, 4: c = 0, 5: d = 0 } = bytes;
  if (type !== TYPE.data || flags > END_FLAG || bytes.length > MAX_FRAME_BYTES) return 0;
  if (bytes.length < HEADER_BYTES + 1 - flags) return 0;
  return a * 0x1_00_00_00 + (b << 16) + (c << 8) + d;
}

/** Of a DATA frame. */
export function hasEnd(bytes: Uint8Array): boolean {
  return bytes[1] === END_FLAG;
}

/** Gives a whole frame to another stream, in place: a relay forwards bytes and copies none. */
export function setStream(bytes: Uint8Array, stream: number): void {
  bytes[2] = stream >>> 24;
  bytes[3] = stream >>> 16;
  bytes[4] = stream >>> 8;
  bytes[5] = stream;
}
