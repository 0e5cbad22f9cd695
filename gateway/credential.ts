/**
 * What a request shows to prove who sends it: `Authorization: Bearer …` (RFC 6750 §2.1), or the same in `x-api-key`, as
 * Anthropic's clients send it, or in `api-key`, as those of Azure do. One code path for all, on every route.
 */

/** Whose value is the key itself. */
export const KEY_HEADERS = ['x-api-key', 'api-key'] as const;

export type Credential =
  | { readonly kind: 'none' }
  | { readonly kind: 'token'; readonly token: string }
  /** Another scheme, an empty value, or two that contradict each other. */
  | { readonly kind: 'malformed' };

/** @param headers every value of every header, as Node's `headersDistinct` gives them */
export function readCredential(headers: Readonly<Record<string, readonly string[] | undefined>>): Credential {
  const tokens = new Set([
    ...(headers['authorization'] ?? []).map(bearerToken),
    ...KEY_HEADERS.flatMap((name) => headers[name] ?? []).map((value) => value.trim()),
  ]);
  const [token] = tokens;
  if (tokens.size === 0) return { kind: 'none' };
  // Which of two would count should be nobody's guess.
  return tokens.size > 1 || token === undefined || token === '' ? { kind: 'malformed' } : { kind: 'token', token };
}

/** The scheme's name is case-insensitive (RFC 9110 §11.1). */
function bearerToken(value: string): string | undefined {
  return /^bearer +(\S+) *$/i.exec(value)?.[1];
}
