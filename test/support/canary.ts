/** Looks for a secret in what was overheard, in each form in which it could be there. */

/**
 * The forms: as it is, hexadecimal in both cases, and base64 in both alphabets. What base64 makes of a text depends on
 * how many bytes are before it, so there are three of each, without the characters at both ends that its neighbours
 * have a part in.
 */
export function formsOf(secret: Buffer): readonly Buffer[] {
  const hex = secret.toString('hex');
  const base64 = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), secret]).toString('base64');
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + secret.length) * 8) / 6));
  });
  const base64url = base64.map((text) => text.replaceAll('+', '-').replaceAll('/', '_'));
  return [secret, ...[hex, hex.toUpperCase(), ...base64, ...base64url].map((text) => Buffer.from(text))];
}

/** @returns the names of those secrets that are there in any form */
export function overheard(heard: readonly Buffer[], secrets: ReadonlyMap<string, Buffer>): readonly string[] {
  const isThere = (secret: Buffer) => formsOf(secret).some((form) => heard.some((bytes) => bytes.includes(form)));
  return [...secrets].filter(([, secret]) => isThere(secret)).map(([name]) => name);
}
