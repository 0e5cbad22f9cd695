/** Open Responses, `CompactResource`: a conversation that was made shorter. Pure. */
import type { LanguageModelV4Usage } from '@ai-sdk/provider';
import { itemId, responseId, type CompactionItem, type Item } from './items.ts';
import { encodeOpaqueText } from './opaque-text.ts';
import { encodeUsage } from './resource.ts';

interface Compaction {
  /** Names the new items; see `itemId`. */
  readonly key: string;
  /** Unix time in seconds. */
  readonly createdAt: number;
  /** What stays of the conversation, oldest first. */
  readonly said: readonly Item[];
  /** Of all of it. */
  readonly summary: string;
  readonly usage: LanguageModelV4Usage;
}

export function encodeCompaction({ key, createdAt, said, summary, usage }: Compaction): object {
  const item: CompactionItem = {
    type: 'compaction',
    id: itemId('compaction', { key, number: said.length }),
    encrypted_content: encodeOpaqueText(summary),
  };
  return {
    id: responseId(key),
    object: 'response.compaction',
    created_at: createdAt,
    output: [...said, item],
    usage: encodeUsage(usage),
  };
}
