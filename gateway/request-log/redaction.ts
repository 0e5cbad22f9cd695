/**
 * What must not be kept of a text: keys, tokens, passwords. Found by their shape, by the name of the field they stand
 * in, or because the request itself showed them as its credential. Rather too much is taken out than too little.
 *
 * Every pattern takes time in proportion to the text, whatever the text: none begins with an open repetition.
 */

const MASK = '[REDACTED]';

/** A credential shorter than this is a placeholder such as "none"; to take it out would blot out words. */
const MIN_SECRET_LENGTH = 6;

/** Names of fields that hold secrets, or the ends of such names: `client_secret`, `accessToken`, `X-API-Key`. */
const SECRET_NAME =
  '(?:password|passwd|passphrase|pwd|secret|token|credential|authorization|cookie|(?:api|access|private|secret|signing)[_-]?key)';

/** Pairs of a pattern and what stays of it. */
const PATTERNS: readonly (readonly [RegExp, string])[] = [
  [/-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----[^]*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|$)/g, MASK],
  // A string in JSON, or in JSON within a JSON string, whose quotes have backslashes before them.
  [new RegExp(`(${SECRET_NAME}s?(\\\\*)"\\s{0,8}:\\s{0,8}\\2")[^]*?((?<!\\\\)\\2"|$)`, 'gi'), `$1${MASK}$3`],
  [new RegExp(`(${SECRET_NAME}s?\\\\*"\\s{0,8}:\\s{0,8}\\[)(?=\\s{0,8}\\\\*")[^\\]]*`, 'gi'), `$1${MASK}`],
  [new RegExp(`(${SECRET_NAME}\\\\*"\\s{0,8}:\\s{0,8})-?\\d[\\d.]*`, 'gi'), `$1"${MASK}"`],
  // A header, a form field, a variable.
  [
    new RegExp(
      `(${SECRET_NAME}\\s{0,3}[=:]\\s{0,3})(?:(?:Bearer|Basic)\\s{1,3})?(?!\\[REDACTED)[^\\s"'\\\\,;&}]+`,
      'gi',
    ),
    `$1${MASK}`,
  ],
  [/\b(bearer\s{1,3})[\w.~+/=-]{8,}/gi, `$1${MASK}`],
  [/:\/\/[^\s/@:"']{0,256}:[^\s/@"']{1,256}@/g, `://${MASK}@`],
  [/svc-v1\.[\w.~+/=-]+/g, MASK],
  // An invite, as text and as a link.
  [/SVC:[a-z2-7]{8,}/gi, MASK],
  [/(#i=)[\w-]{8,}/g, `$1${MASK}`],
  [/(?<![a-z0-9])[spr]k[-_][\w-]{8,}/gi, MASK],
  [
    /(?<![a-z0-9])(?:gh[oprsu]_|github_pat_|glpat-|hf_|gsk_|npm_|pypi-|xai-|xox[abeoprs]-|r8_|nvapi-|tvly-)[\w-]{10,}/gi,
    MASK,
  ],
  [/(?<![A-Z0-9])A[KS]IA[0-9A-Z]{16}/g, MASK],
  [/AIza[\w-]{30,}/g, MASK],
  [/(?<![\w-])eyJ[\w-]{10,}\.[\w-]{5,}(?:\.[\w-]*)?/g, MASK],
];

/** @param secrets what the request showed as its credential: taken out wherever it stands */
export function redact(text: string, secrets: readonly string[] = []): string {
  const known = secrets.filter((secret) => secret.length >= MIN_SECRET_LENGTH);
  const without = known.reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
  return PATTERNS.reduce((rest, [pattern, kept]) => rest.replace(pattern, kept), without);
}

/** A path as it was written, unless its plain form shows a secret: then that form, without it. */
export function redactPath(path: string, secrets: readonly string[] = []): string {
  const plain = decoded(path);
  const hidden = redact(plain, secrets);
  return hidden === plain ? path : hidden;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** One line of at most so many characters, in which nothing steers a terminal. */
export function singleLine(text: string, maxLength: number): string {
  return text.slice(0, maxLength).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, '?');
}
