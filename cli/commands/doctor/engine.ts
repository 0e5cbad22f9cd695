/** Whether the engine is there for what this machine has: its processor, and its graphics card. */
import { readdir } from 'node:fs/promises';
import { packageRoot } from '../../../service/package.ts';
import type { Check } from './check.ts';

export const engine: Check = {
  name: 'engine',
  async run() {
    const installed = await readdir(new URL('node_modules/@node-llama-cpp/', packageRoot)).catch(() => []);
    if (installed.length === 0) {
      return {
        state: 'failed',
        message: 'none is installed, so no model runs',
        remedy: 'Remove node_modules and run npm start.',
      };
    }
    const message = `installed: ${installed.join(', ')}`;
    const missing = (await supportedCards()).filter((kind) => !installed.some((name) => name.includes(`-${kind}`)));
    if (missing.length === 0) return { state: 'ok', message };
    return {
      state: 'warning',
      message: `${message}; this machine could use ${missing.join(', ')} too`,
      remedy: `Set POSTERN_ENGINES=${missing.join(',')} in the environment of npm start, which then installs it.`,
    };
  },
};

/** Metal comes with the Mac's only package. Read only here: the engine is a large package. */
async function supportedCards(): Promise<readonly string[]> {
  const { getLlamaGpuTypes } = await import('node-llama-cpp');
  const kinds = await getLlamaGpuTypes('supported');
  return kinds.filter((kind) => kind === 'cuda' || kind === 'vulkan');
}
