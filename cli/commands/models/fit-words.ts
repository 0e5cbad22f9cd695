import type { MemoryFit } from '../../../core/inference/local/memory-fit.ts';
import { formatBytes } from '../../format-bytes.ts';

/** A verdict with the figures that it comes from. */
export function fitWords({ verdict, contextTokens, estimate, availableBytes }: MemoryFit): string {
  const parts = [
    `weights ${formatBytes(estimate.weightBytes)}`,
    `${contextTokens} tokens of context ${formatBytes(estimate.cacheBytes)}`,
    `the rest ${formatBytes(estimate.scratchBytes + estimate.processBytes)}`,
  ];
  const total = formatBytes(estimate.totalBytes);
  return `${verdict}, about ${total} of ${formatBytes(availableBytes)} that are free (${parts.join(', ')})`;
}
