/**
 * The payloads of the two handshake messages.
 *
 *     offset  size  field
 *          0     2  length of the JSON
 *          2     n  JSON, one object
 *        2+n     -  zero, up to a multiple of 256
 *
 * Message 1 can be replayed by anybody who recorded it, so what it says are hints, and no effect may follow from them.
 */
import { findBase64url, formatBase64url } from './base64url.ts';
import { concatBytes, encodeU16, isZero, utf8ToBytes, viewOf } from './bytes.ts';
import { ChannelError } from './errors.ts';
import type { JsonObject } from './json.ts';
import { findJsonObject, isCount } from './json.ts';
import type { SessionId } from './keys.ts';
import { asSessionId, ID_BYTES } from './keys.ts';

/** What the length of a handshake message may tell: how many of these its payload took. */
const PAYLOAD_BLOCK_BYTES = 256;

/** Message 1. Each is left out by a client that has nothing to say. */
export interface ClientHints {
  /** `cv` */
  readonly clientVersion?: string;
  /** `lang`, BCP 47 */
  readonly language?: string;
}

/** Message 2: the session's name and what the responder will allow it. On the wire times are in seconds. */
export interface SessionTerms {
  /** `sid` */
  readonly sessionId: SessionId;
  /** `exp`: after this no new calls. */
  readonly expiresAfterMs: number;
  /** `idle`: after this without a new call, the same. */
  readonly idleAfterMs: number;
  /** `rekey`: after this the initiator should make a new session. */
  readonly rekeyAfterMs: number;
  /** `maxBody` */
  readonly maxBodyBytes: number;
  /** `calls` */
  readonly callNumbers: number;
  /** `boot`: another one tells the initiator that the responder was restarted in between. */
  readonly boot: string;
  /** `time`: the responder's clock, Unix time. */
  readonly timeMs: number;
}

export function encodeClientHints({ clientVersion, language }: ClientHints): Uint8Array {
  return encodePayload({ cv: clientVersion, lang: language });
}

/** @throws ChannelError `handshake_refused` */
export function decodeClientHints(payload: Uint8Array): ClientHints {
  const { cv, lang } = decodePayload(payload);
  if (!isHint(cv) || !isHint(lang)) throw refused();
  return { ...(cv === undefined ? {} : { clientVersion: cv }), ...(lang === undefined ? {} : { language: lang }) };
}

function isHint(value: unknown): value is string | undefined {
  return value === undefined || typeof value === 'string';
}

export function encodeSessionTerms(terms: SessionTerms): Uint8Array {
  return encodePayload({
    sid: formatBase64url(terms.sessionId),
    exp: terms.expiresAfterMs / 1000,
    idle: terms.idleAfterMs / 1000,
    rekey: terms.rekeyAfterMs / 1000,
    maxBody: terms.maxBodyBytes,
    calls: terms.callNumbers,
    boot: terms.boot,
    time: Math.floor(terms.timeMs / 1000),
  });
}

/** @throws ChannelError `handshake_refused` */
export function decodeSessionTerms(payload: Uint8Array): SessionTerms {
  const { sid, exp, idle, rekey, maxBody, calls, boot, time } = decodePayload(payload);
  const id = typeof sid === 'string' ? findBase64url(sid) : undefined;
  if (id?.length !== ID_BYTES || typeof boot !== 'string') throw refused();
  if (!isCount(exp) || !isCount(idle) || !isCount(rekey) || !isCount(time)) throw refused();
  if (!isCount(maxBody) || !isCount(calls)) throw refused();
  return {
    sessionId: asSessionId(id),
    expiresAfterMs: exp * 1000,
    idleAfterMs: idle * 1000,
    rekeyAfterMs: rekey * 1000,
    maxBodyBytes: maxBody,
    callNumbers: calls,
    boot,
    timeMs: time * 1000,
  };
}

export function encodePayload(value: JsonObject): Uint8Array {
  const json = utf8ToBytes(JSON.stringify(value));
  const used = 2 + json.length;
  const padding = Math.ceil(used / PAYLOAD_BLOCK_BYTES) * PAYLOAD_BLOCK_BYTES - used;
  return concatBytes(encodeU16(json.length), json, new Uint8Array(padding));
}

function decodePayload(payload: Uint8Array): JsonObject {
  if (payload.length < PAYLOAD_BLOCK_BYTES || payload.length % PAYLOAD_BLOCK_BYTES !== 0) throw refused();
  const end = 2 + viewOf(payload).getUint16(0);
  const value = findJsonObject(payload.subarray(2, end));
  if (end > payload.length || value === undefined || !isZero(payload.subarray(end))) throw refused();
  return value;
}

function refused(): ChannelError {
  return new ChannelError('handshake_refused');
}
