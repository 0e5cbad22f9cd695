/** Whether there is room for what the service writes, and for another model. */
import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { formatBytes } from '../../format-bytes.ts';
import type { Check } from './check.ts';

const STATE_BYTES = 200e6;
const MODEL_BYTES = 5e9;

export const disk: Check = {
  name: 'disk',
  async run({ home }) {
    const free = await freeBytes(home);
    const message = `${formatBytes(free)} are free for ${home}`;
    if (free >= MODEL_BYTES) return { state: 'ok', message };
    if (free >= STATE_BYTES) return { state: 'warning', message: `${message}: little room for models` };
    return {
      state: 'failed',
      message: `${message}: the service will not be able to write`,
      remedy: 'Make room there.',
    };
  },
};

/** Of the folder, or of the one in which it will be made. */
async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    if (dirname(folder) === folder) throw error;
    return freeBytes(dirname(folder));
  }
}
