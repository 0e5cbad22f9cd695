/** How much memory models could have now. */
import { totalmem } from 'node:os';
import { availableMemoryBytes } from '../../../core/system-memory.ts';
import { formatBytes } from '../../format-bytes.ts';
import type { Check } from './check.ts';

/** A model of a billion parameters and a short context. */
const SMALL_MODEL_BYTES = 1.5e9;

export const memory: Check = {
  name: 'memory',
  async run() {
    const available = await availableMemoryBytes();
    const message = `${formatBytes(available)} of ${formatBytes(totalmem())} are available`;
    if (available >= SMALL_MODEL_BYTES) return { state: 'ok', message };
    return { state: 'warning', message: `${message}: only the smallest models fit`, remedy: 'Close other programs.' };
  },
};
