/**
 * Whether what has to be kept can be written at the moment. From the first write that fails a small one is tried again
 * and again; when it works, so do the others, and what had to wait is written.
 */
import { findDiskFault, remedyOf, type DiskFault, type FoundDiskFault } from './disk-fault.ts';

/** Between two tries. */
const PROBE_MS = 2000;

export interface StorageTrouble {
  readonly fault: DiskFault;
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
}

export interface StorageHealth {
  /** Takes note of a failure, if it is a disk's. Never throws. */
  note(error: unknown): void;
  /**
   * Runs a write that a disk has refused again, until it works or the process ends. It must be right to run it twice.
   * @param onFailure called where it fails and that is no disk's fault: time does not mend that, and it is not run again
   */
  retry(write: () => void, onFailure: (error: unknown) => void): void;
  /** Undefined while everything can be written. */
  trouble(): StorageTrouble | undefined;
  /** Ends the tries. */
  close(): void;
}

interface HealthOptions {
  /** A small write to the same disk. @throws where that fails */
  readonly probe: () => void;
  readonly setTimer: (delayMs: number, run: () => void) => () => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Words for the owner, when trouble begins and ends. */
  readonly say: (words: string) => void;
}

export function createStorageHealth({ probe, setTimer, now, say }: HealthOptions): StorageHealth {
  let trouble: StorageTrouble | undefined;
  let cancel = (): void => undefined;
  const waiting = new Map<() => void, (error: unknown) => void>();

  const begin = ({ fault, code }: FoundDiskFault): void => {
    if (trouble !== undefined) return;
    trouble = { fault, sinceMs: now() };
    say(`postern: SVC_HOME can't be written (${code}). ${remedyOf(fault)} Postern keeps trying.`);
    again();
  };
  const again = (): void => {
    cancel = setTimer(PROBE_MS, tryAgain);
  };
  const tryAgain = (): void => {
    if (!succeeds(probe)) return again();
    // Each by itself: one that keeps failing holds up no other.
    for (const [write, onFailure] of waiting) writeLate(write, onFailure);
    if (waiting.size > 0) return again();
    trouble = undefined;
    say('postern: SVC_HOME can be written again.');
  };
  const writeLate = (write: () => void, onFailure: (error: unknown) => void): void => {
    try {
      write();
      waiting.delete(write);
    } catch (error) {
      if (findDiskFault(error) !== undefined) return;
      waiting.delete(write);
      onFailure(error);
    }
  };
  return {
    note(error) {
      const found = findDiskFault(error);
      if (found !== undefined) begin(found);
    },
    retry: (write, onFailure) => void waiting.set(write, onFailure),
    trouble: () => trouble,
    close: () => cancel(),
  };
}

function succeeds(write: () => void): boolean {
  try {
    write();
    return true;
  } catch {
    return false;
  }
}
