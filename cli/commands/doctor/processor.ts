/** Whether models run at full speed on this processor. */
import { readFile } from 'node:fs/promises';
import { cpus } from 'node:os';
import type { Check } from './check.ts';

/** Without these the engine falls back to code that is several times slower. */
const WANTED = ['avx', 'avx2', 'fma', 'f16c'];

export const processor: Check = {
  name: 'processor',
  async run() {
    const cores = cpus();
    const name = `${cores.length} × ${cores[0]?.model.trim() ?? process.arch}`;
    const missing = process.arch === 'x64' ? await missingFlags() : [];
    if (missing.length === 0) return { state: 'ok', message: name };
    return { state: 'warning', message: `${name} has no ${missing.join(', ')}: models without a GPU will be slow` };
  },
};

/** Where the system doesn't say, none. */
async function missingFlags(): Promise<readonly string[]> {
  const text = await readFile('/proc/cpuinfo', 'utf8').catch(() => '');
  const flags = /^flags\s*:(.*)$/m.exec(text)?.[1]?.trim().split(/\s+/);
  return flags === undefined ? [] : WANTED.filter((flag) => !flags.includes(flag));
}
