/** Pictures, sound and files in a message, as the model port has them. Whether a model can use them is its business. */
import type { LanguageModelV4FilePart } from '@ai-sdk/provider';

export type MediaPart = LanguageModelV4FilePart;

/** What stands before the data of a `data:` URL, and all of another URL, is no longer than this. */
export const MAX_URL_LENGTH = 8192;

/**
 * @param source a `data:` URL (RFC 2397), another URL, or bare base64
 * @param fallbackType IANA media type; `image/*` where a client did not say more
 */
export function mediaPart(source: string, fallbackType: string): MediaPart {
  const inline = /^data:([^;,]*)(?:;[^,]*)?;base64,/.exec(source.slice(0, MAX_URL_LENGTH));
  if (inline !== null) return base64Part(source.slice(inline[0].length), inline[1] || fallbackType);
  const url = source.length <= MAX_URL_LENGTH ? URL.parse(source) : null;
  return url === null
    ? base64Part(source, fallbackType)
    : { type: 'file', mediaType: fallbackType, data: { type: 'url', url } };
}

export function base64Part(base64: string, mediaType: string): MediaPart {
  return { type: 'file', mediaType, data: { type: 'data', data: base64 } };
}
