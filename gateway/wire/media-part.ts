/** Pictures, sound and files in a message, as the model port has them. Whether a model can use them is its business. */

export interface MediaPart {
  readonly type: 'file';
  /** IANA media type; `image/*` where a client did not say more. */
  readonly mediaType: string;
  /** Base64, or the address where the data is. */
  readonly data: string | URL;
}

/** What stands before the data of a `data:` URL, and all of another URL, is no longer than this. */
export const MAX_URL_LENGTH = 8192;

/** @param source a `data:` URL (RFC 2397), another URL, or bare base64 */
export function mediaPart(source: string, fallbackType: string): MediaPart {
  const inline = /^data:([^;,]*)(?:;[^,]*)?;base64,/.exec(source.slice(0, MAX_URL_LENGTH));
  if (inline !== null)
    return { type: 'file', mediaType: inline[1] || fallbackType, data: source.slice(inline[0].length) };
  const url = source.length <= MAX_URL_LENGTH ? (URL.parse(source) ?? undefined) : undefined;
  return { type: 'file', mediaType: fallbackType, data: url ?? source };
}
