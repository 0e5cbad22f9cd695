/** Pictures, sound and files in a message, as the model port has them. Whether a model can use them is its business. */

export interface MediaPart {
  readonly type: 'file';
  /** IANA media type; `image/*` where a client did not say more. */
  readonly mediaType: string;
  /** Base64, or the address where the data is. */
  readonly data: string | URL;
}

/** @param source a `data:` URL (RFC 2397), another URL, or bare base64 */
export function mediaPart(source: string, fallbackType: string): MediaPart {
  const inline = /^data:([^;,]*)[^,]*;base64,/.exec(source);
  if (inline !== null)
    return { type: 'file', mediaType: inline[1] || fallbackType, data: source.slice(inline[0].length) };
  const url = URL.canParse(source) ? new URL(source) : undefined;
  return { type: 'file', mediaType: fallbackType, data: url ?? source };
}
