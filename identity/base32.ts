/** Base32 as RFC 4648 §6 has it, upper case and without padding. One text for each value: stray bits are refused. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

export function formatBase32(bytes: Uint8Array): string {
  let text = '';
  let bits = 0;
  let bitCount = 0;
  for (const byte of bytes) {
    bits = ((bits << 8) | byte) & 0xfff;
    bitCount += 8;
    for (; bitCount >= 5; bitCount -= 5) text += ALPHABET.charAt((bits >> (bitCount - 5)) & 31);
  }
  return bitCount === 0 ? text : text + ALPHABET.charAt((bits << (5 - bitCount)) & 31);
}

/** `undefined` if the text is not what `formatBase32` would write. */
export function findBase32(text: string): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.floor((text.length * 5) / 8));
  let bits = 0;
  let bitCount = 0;
  let at = 0;
  for (const character of text) {
    bits = ((bits << 5) | ALPHABET.indexOf(character)) & 0xfff;
    bitCount += 5;
    if (bitCount < 8) continue;
    bitCount -= 8;
    bytes[at++] = (bits >> bitCount) & 0xff;
  }
  return formatBase32(bytes) === text ? bytes : undefined;
}
