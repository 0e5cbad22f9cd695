/** Reading JSON that a peer wrote: all of it is `unknown` until a field has been looked at. */
import { decodeUtf8 } from './bytes.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

/** `undefined` if the bytes are not the UTF-8 of one JSON object. */
export function findJsonObject(bytes: Uint8Array): JsonObject | undefined {
  const text = decodeUtf8(bytes);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A number that counts something. */
export function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}
