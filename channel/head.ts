/**
 * What the head records hold: the inner request and answer as JSON. Method, path, headers and length are inside the
 * AEAD, so nobody between sees or changes them. The one-letter names are the wire's, and stay in this file.
 */
import { findBase64url, formatBase64url } from './base64url.ts';
import { utf8ToBytes } from './bytes.ts';
import { ChannelError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { findJsonObject, isCount } from './json.ts';
import type { SessionId } from './keys.ts';
import { asSessionId, ID_BYTES } from './keys.ts';

/** In order, and with repetition. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

export interface RequestHead {
  /** `m` */
  readonly method: string;
  /** `p`, from `/` on */
  readonly path: string;
  /** `q`, without the question mark */
  readonly query?: string;
  /** `h` */
  readonly headers: HeaderList;
  /** `bl`: what the data of all later records adds up to; `null` if the sender can't say. */
  readonly bodyBytes: number | null;
  /** `k`: 16 random bytes, the same on every retry of one action of the user. */
  readonly idempotencyKey?: Uint8Array;
}

export interface AnswerHead {
  /** `s` */
  readonly status: number;
  /** `h` */
  readonly headers: HeaderList;
  /** `bl` */
  readonly bodyBytes: number | null;
}

/** Which call of which session of the same device a control call is about. */
export interface CallReference {
  /** `sid` */
  readonly sessionId: SessionId;
  /** `n` */
  readonly callNumber: number;
}

/** What a call's head asks for: a route, or something about another call. */
export type CallHead =
  | { readonly kind: 'request'; readonly head: RequestHead }
  /** `m: "CANCEL"`: stop it. */
  | { readonly kind: 'cancel'; readonly call: CallReference }
  /** `m: "ATTACH"`: its records again, from number `i` on. */
  | { readonly kind: 'attach'; readonly call: CallReference; readonly nextIndex: number };

/** Why a sender gave up. */
export interface AbortReason {
  readonly code: string;
  readonly message: string;
}

export const IDEMPOTENCY_KEY_BYTES = 16;
/** A head of 64 KiB has room for thousands, each of which takes far more memory than it took there. */
export const MAX_HEADERS = 128;
const CANCEL = 'CANCEL';
const ATTACH = 'ATTACH';

export function encodeRequestHead(head: RequestHead): Uint8Array {
  const { method: m, path: p, query: q, headers: h, bodyBytes: bl, idempotencyKey } = head;
  const k = idempotencyKey === undefined ? undefined : formatBase64url(idempotencyKey);
  return encodeJson({ m, p, q, h, bl, k });
}

export function encodeCancelHead({ sessionId, callNumber: n }: CallReference): Uint8Array {
  return encodeJson({ m: CANCEL, sid: formatBase64url(sessionId), n });
}

export function encodeAttachHead({ sessionId, callNumber: n }: CallReference, nextIndex: number): Uint8Array {
  return encodeJson({ m: ATTACH, sid: formatBase64url(sessionId), n, i: nextIndex });
}

/** @throws ChannelError `malformed` */
export function decodeCallHead(data: Uint8Array): CallHead {
  const json = decodeJson(data);
  if (json['m'] === CANCEL) return { kind: 'cancel', call: readReference(json) };
  if (json['m'] !== ATTACH) return { kind: 'request', head: readRequest(json) };
  const { i } = json;
  if (!isCount(i)) throw malformed();
  return { kind: 'attach', call: readReference(json), nextIndex: i };
}

function readReference({ sid, n }: JsonObject): CallReference {
  const id = typeof sid === 'string' ? findBase64url(sid) : undefined;
  if (id?.length !== ID_BYTES || !isCount(n)) throw malformed();
  return { sessionId: asSessionId(id), callNumber: n };
}

function readRequest({ m, p, q, h, bl, k }: JsonObject): RequestHead {
  if (typeof m !== 'string' || typeof p !== 'string' || !p.startsWith('/')) throw malformed();
  if (q !== undefined && typeof q !== 'string') throw malformed();
  return {
    method: m,
    path: p,
    ...(q === undefined ? {} : { query: q }),
    headers: readHeaders(h),
    bodyBytes: readBodyBytes(bl),
    ...(k === undefined ? {} : { idempotencyKey: readIdempotencyKey(k) }),
  };
}

export function encodeAnswerHead({ status: s, headers: h, bodyBytes: bl }: AnswerHead): Uint8Array {
  return encodeJson({ s, h, bl });
}

/** @throws ChannelError `malformed` */
export function decodeAnswerHead(data: Uint8Array): AnswerHead {
  const { s, h, bl } = decodeJson(data);
  // RFC 9110 §15: a final status, of three digits.
  if (!isCount(s) || s < 200 || s > 599) throw malformed();
  return { status: s, headers: readHeaders(h), bodyBytes: readBodyBytes(bl) };
}

export function encodeAbortReason({ code, message }: AbortReason): Uint8Array {
  return encodeJson({ code, message });
}

/** @throws ChannelError `malformed` */
export function decodeAbortReason(data: Uint8Array): AbortReason {
  const { code, message } = decodeJson(data);
  if (typeof code !== 'string' || typeof message !== 'string') throw malformed();
  return { code, message };
}

function readHeaders(value: unknown): HeaderList {
  if (!Array.isArray(value) || value.length > MAX_HEADERS || !value.every(isHeader)) throw malformed();
  return value;
}

function isHeader(value: unknown): value is readonly [string, string] {
  return Array.isArray(value) && value.length === 2 && value.every((part) => typeof part === 'string');
}

function readBodyBytes(value: unknown): number | null {
  if (value !== null && !isCount(value)) throw malformed();
  return value;
}

function readIdempotencyKey(value: unknown): Uint8Array {
  const key = typeof value === 'string' ? findBase64url(value) : undefined;
  if (key?.length !== IDEMPOTENCY_KEY_BYTES) throw malformed();
  return key;
}

function encodeJson(value: JsonObject): Uint8Array {
  return utf8ToBytes(JSON.stringify(value));
}

function decodeJson(data: Uint8Array): JsonObject {
  const value = findJsonObject(data);
  if (value === undefined) throw malformed();
  return value;
}

function malformed(): ChannelError {
  return new ChannelError('malformed');
}
