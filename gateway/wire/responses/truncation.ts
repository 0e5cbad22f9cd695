/** Open Responses, `truncation: "auto"`: a conversation without its beginning. Pure. */
import type { Item } from './items.ts';

/**
 * The conversation without its oldest items. What lays down how to answer stays, and so does what is to be answered: the
 * last item, or the results that it ends with and the calls that they are of. Another call's result goes with the call.
 * @param oldest how many items at the most
 */
export function withoutOldest(items: readonly Item[], oldest: number): readonly Item[] {
  const asked = lastResults(items);
  let left = oldest;
  const isDropped = (item: Item, index: number): boolean => {
    const stays = index === items.length - 1 || isInstruction(item) || ('call_id' in item && asked.has(item.call_id));
    if (left <= 0 || stays) return false;
    left -= 1;
    return true;
  };
  const kept = items.filter((item, index) => !isDropped(item, index));
  const calls = new Set(kept.flatMap((item) => (item.type === 'function_call' ? [item.call_id] : [])));
  return kept.filter((item) => item.type !== 'function_call_output' || calls.has(item.call_id));
}

/** The calls whose results a conversation ends with. */
function lastResults(items: readonly Item[]): ReadonlySet<string> {
  const last = items.findLastIndex((item) => item.type !== 'function_call_output');
  return new Set(items.slice(last + 1).flatMap((item) => ('call_id' in item ? [item.call_id] : [])));
}

function isInstruction(item: Item): boolean {
  return item.type === 'message' && (item.role === 'system' || item.role === 'developer');
}
