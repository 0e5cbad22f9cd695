// Folders in which something is made whole before it gets its name.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** One whose program was killed is taken away after this long. */
const ABANDONED_AFTER_MS = 60 * 60 * 1000;

/**
 * @param {(scratch: string) => void} make is given a new folder in `parent`, which is gone when this returns
 */
export function inScratchFolder(parent, make) {
  mkdirSync(parent, { recursive: true });
  removeAbandoned(parent);
  const scratch = mkdtempSync(join(parent, 'scratch-'));
  try {
    make(scratch);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function removeAbandoned(parent) {
  for (const name of readdirSync(parent).filter((entry) => entry.startsWith('scratch-'))) {
    const path = join(parent, name);
    const changedAtMs = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now();
    if (Date.now() - changedAtMs > ABANDONED_AFTER_MS) rmSync(path, { recursive: true, force: true });
  }
}
