/**
 * What the head records hold: the inner request and answer as JSON. Method, path, headers and length are inside the
 * AEAD, so nobody between sees or changes them. The one-letter names are the wire's, and stay in this file.
 */
import { findBase64url, formatBase64url } from './base64url.ts';
import { utf8ToBytes } from './bytes.ts';
import { ChannelError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { findJsonObject, isCount } from './json.ts';

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

/** Why a sender gave up. */
export interface AbortReason {
  readonly code: string;
  readonly message: string;
}

const IDEMPOTENCY_KEY_BYTES = 16;

export function encodeRequestHead(head: RequestHead): Uint8Array {
  const { method: m, path: p, query: q, headers: h, bodyBytes: bl, idempotencyKey } = head;
  const k = idempotencyKey === undefined ? undefined : formatBase64url(idempotencyKey);
  return encodeJson({ m, p, q, h, bl, k });
}

/** @throws ChannelError `malformed` */
export function decodeRequestHead(data: Uint8Array): RequestHead {
  const { m, p, q, h, bl, k } = decodeJson(data);
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
  if (!Array.isArray(value) || !value.every(isHeader)) throw malformed();
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
