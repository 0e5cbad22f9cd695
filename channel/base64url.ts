/** base64url without padding, RFC 4648 §5, for ids inside JSON. One text per value: §3.5's stray bits are refused. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

export function formatBase64url(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const [a = 0, b = 0, c = 0] = bytes.subarray(at, at + 3);
    const group = (a << 16) | (b << 8) | c;
    const characters = Math.min(bytes.length - at, 3) + 1;
    for (let i = 0; i < characters; i++) text += ALPHABET.charAt((group >> (18 - 6 * i)) & 63);
  }
  return text;
}

/** `undefined` if the text is not what `formatBase64url` would write. */
export function findBase64url(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let bits = 0;
  let bitCount = 0;
  let at = 0;
  for (const character of text) {
    bits = ((bits << 6) | ALPHABET.indexOf(character)) & 0x3fff;
    bitCount += 6;
    if (bitCount < 8) continue;
    bitCount -= 8;
    bytes[at++] = (bits >> bitCount) & 0xff;
  }
  return formatBase64url(bytes) === text ? bytes : undefined;
}
