/**
 * Who may register: a list of one gateway a line, its relay key GR (64 hexadecimal digits, or base64url) or its routing
 * id (24 base32 characters). What follows `#` is a remark. Without a list, anybody may.
 */
import { formatRoutingId, routingIdOf } from './routing-id.ts';

export interface Admission {
  /** @param routingId as `formatRoutingId` gives it */
  admits(routingId: string): boolean;
}

export const admitsAnybody: Admission = { admits: () => true };

/** @returns the list, or in plain words what is wrong with it */
export function parseAdmission(text: string): Admission | string {
  const routingIds = new Set<string>();
  for (const [index, line] of text.split('\n').entries()) {
    const word = line.replace(/#.*$/u, '').trim();
    if (word === '') continue;
    const routingId = routingIdIn(word);
    if (routingId === undefined) return `line ${index + 1} is neither a relay key nor a routing id.`;
    routingIds.add(routingId);
  }
  return { admits: (routingId) => routingIds.has(routingId) };
}

function routingIdIn(word: string): string | undefined {
  if (/^[a-z2-7]{24}$/iu.test(word)) return word.toLowerCase();
  const key = /^[0-9a-f]{64}$/iu.test(word) ? Buffer.from(word, 'hex') : Buffer.from(word, 'base64url');
  const isWhole = key.length === 32 && (word.length === 64 || key.toString('base64url') === word);
  return isWhole ? formatRoutingId(routingIdOf(key)) : undefined;
}
