/** What a device stores, in memory, for a test to look at. */
import type { SecretStorage } from '../../clients/sdk/index.ts';

export interface WatchedStorage {
  readonly storage: SecretStorage;
  readonly stored: Map<string, string>;
  /** The names that were written, in that order, whatever became of them. */
  readonly writes: string[];
}

export function watchedStorage(): WatchedStorage {
  const stored = new Map<string, string>();
  const writes: string[] = [];
  const storage: SecretStorage = {
    read: async (name) => stored.get(name),
    write: async (name, text) => void (writes.push(name), stored.set(name, text)),
    erase: async (name) => void stored.delete(name),
  };
  return { storage, stored, writes };
}
