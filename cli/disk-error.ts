/** What a disk refuses, as a sentence that says which file it is about and what to do. */
import { findDiskFault, type DiskFault } from '../storage/disk-fault.ts';
import { CommandError } from './command.ts';

const DATABASE = 'state.db';

interface Place {
  /** The folder that was worked in. */
  readonly folder: string;
  /** What exactly, where the system says; else the folder. */
  readonly path: string;
  readonly code: string;
}

const WORDS: Readonly<Record<DiskFault, (place: Place) => string>> = {
  full: ({ folder, code }) => `the disk that holds ${folder} is full (${code}). Make room on it, and try again.`,
  damaged: ({ folder, code }) =>
    `${folder}/${DATABASE} is damaged (${code}). Put back a copy of it; or move it away, with ${DATABASE}-wal and ` +
    `${DATABASE}-shm: access keys have to be made, and devices paired, anew then.`,
  not_permitted: ({ path, code }) =>
    `${path} can't be used (${code}). Let this user read and write it, or choose another folder.`,
  cannot_open: ({ folder, code }) =>
    `${folder}/${DATABASE} can't be opened (${code}). See that it is a file, that this user may read and write it and ` +
    'its folder, and that enough files may be open ("ulimit -n").',
  wrong_kind: ({ path, code }) =>
    `${path} is a file where a folder should be, or a folder where a file should be (${code}). Move it away.`,
  too_many_open_files: ({ code }) =>
    `too many files are open (${code}). Let this program open more ("ulimit -n 1024"), and try again.`,
  busy: ({ folder, code }) =>
    `another program holds ${folder}/${DATABASE} (${code}). Wait until it is done, or end it, and try again.`,
  failed: ({ folder, code }) =>
    `the disk that holds ${folder} fails (${code}). Look at the system's log, and check the disk.`,
};

/** A disk's refusal as a sentence; any other error as it is. */
export function explainDiskError(error: unknown, folder: string): unknown {
  const found = findDiskFault(error);
  if (found === undefined) return error;
  const { fault, code, path = folder } = found;
  return new CommandError(WORDS[fault]({ folder, path, code }), { cause: error });
}
