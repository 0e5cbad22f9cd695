/**
 * What was worked out about a model file, kept in `state.db` for as long as the file stays what it was: the same path,
 * size and time of change. A file that changed is simply not found; its new entry takes the old one's place.
 */
import { migrate, type Database } from '../../../storage/database.ts';
import { findDiskFault } from '../../../storage/disk-fault.ts';
import type { LocalModel } from '../catalog.ts';

type CachedFile = Pick<LocalModel, 'path' | 'sizeBytes' | 'modifiedAtMs'>;

export interface FileCache {
  find(file: CachedFile): string | undefined;
  /** Never throws: where the disk does not take it, it is remembered until the process ends. */
  store(file: CachedFile, value: string): void;
}

/** @param module the owner of the table, which has the same name */
export function createFileCache(database: Database, module: 'model_details' | 'model_digests'): FileCache {
  migrate(database, module, [
    `CREATE TABLE ${module} (
       path TEXT PRIMARY KEY,
       size_bytes INTEGER NOT NULL,
       modified_at_ms INTEGER NOT NULL,
       value TEXT NOT NULL
     ) STRICT`,
  ]);
  const select = database.prepare<[string, number, number], { value: string }>(
    `SELECT value FROM ${module} WHERE path = ? AND size_bytes = ? AND modified_at_ms = ?`,
  );
  const replace = database.prepare<[string, number, number, string]>(`REPLACE INTO ${module} VALUES (?, ?, ?, ?)`);
  /** What the disk did not take. */
  const unsaved = new Map<string, CachedFile & { readonly value: string }>();
  return {
    find({ path, sizeBytes, modifiedAtMs }) {
      const kept = unsaved.get(path);
      if (kept?.sizeBytes === sizeBytes && kept.modifiedAtMs === modifiedAtMs) return kept.value;
      return database.open ? attempt(() => select.get(path, sizeBytes, modifiedAtMs)?.value) : undefined;
    },
    store({ path, sizeBytes, modifiedAtMs }, value) {
      // A file that was still being read when the service ended.
      if (!database.open) return;
      const saved = attempt(() => replace.run(path, sizeBytes, modifiedAtMs, value));
      if (saved === undefined) unsaved.set(path, { path, sizeBytes, modifiedAtMs, value });
      else unsaved.delete(path);
    },
  };
}

/** What is in here can be worked out again: a disk that fails costs time, and no caller its answer. */
function attempt<Result>(run: () => Result): Result | undefined {
  try {
    return run();
  } catch (error) {
    if (findDiskFault(error) !== undefined) return undefined;
    throw error;
  }
}
