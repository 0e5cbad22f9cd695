/**
 * What was worked out about a model file, kept in `state.db` for as long as the file stays what it was: the same path,
 * size and time of change. A file that changed is simply not found; its new entry takes the old one's place.
 */
import { migrate, type Database } from '../storage/database.ts';
import type { InstalledModel } from './model-catalog.ts';

type CachedFile = Pick<InstalledModel, 'path' | 'sizeBytes' | 'modifiedAtMs'>;

export interface FileCache {
  find(file: CachedFile): string | undefined;
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
  return {
    find: ({ path, sizeBytes, modifiedAtMs }) => select.get(path, sizeBytes, modifiedAtMs)?.value,
    store: ({ path, sizeBytes, modifiedAtMs }, value) => void replace.run(path, sizeBytes, modifiedAtMs, value),
  };
}
