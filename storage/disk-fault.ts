/**
 * What went wrong below a file or the database, told from an error of the system or of SQLite. Every write may end like
 * this; none of it is a mistake of ours, and most of it goes away again.
 */
export type DiskFault =
  /** No room, or over the quota. */
  | 'full'
  /** `state.db` is not a database, or not a whole one. */
  | 'damaged'
  /** This user may not, or the disk is read-only. */
  | 'not_permitted'
  /** SQLite can't open a file, and does not say why. */
  | 'cannot_open'
  /** A file where a folder should be, or the other way round. */
  | 'wrong_kind'
  | 'too_many_open_files'
  /** Another program holds the database for longer than one waits. */
  | 'busy'
  /** The device. */
  | 'failed';

/** errno(3) */
const SYSTEM_CODES: Readonly<Record<string, DiskFault>> = {
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EACCES: 'not_permitted',
  EPERM: 'not_permitted',
  EROFS: 'not_permitted',
  ENOTDIR: 'wrong_kind',
  EISDIR: 'wrong_kind',
  EEXIST: 'wrong_kind',
  EMFILE: 'too_many_open_files',
  ENFILE: 'too_many_open_files',
  EIO: 'failed',
};

/** https://sqlite.org/rescode.html; extended codes begin with these. Other codes mean that a statement is wrong. */
const SQLITE_CODES: readonly (readonly [string, DiskFault])[] = [
  ['SQLITE_FULL', 'full'],
  ['SQLITE_CORRUPT', 'damaged'],
  ['SQLITE_NOTADB', 'damaged'],
  ['SQLITE_READONLY', 'not_permitted'],
  ['SQLITE_PERM', 'not_permitted'],
  ['SQLITE_CANTOPEN', 'cannot_open'],
  ['SQLITE_BUSY', 'busy'],
  ['SQLITE_LOCKED', 'busy'],
  ['SQLITE_IOERR', 'failed'],
];

export interface FoundDiskFault {
  readonly fault: DiskFault;
  /** Such as `ENOSPC`. */
  readonly code: string;
  /** The file or folder, where the system says. */
  readonly path: string | undefined;
}

/** Looks through the causes of an error, too. @returns undefined for one that is no disk's */
export function findDiskFault(error: unknown): FoundDiskFault | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const { code, path, syscall, cause } = fieldsOf(error);
  const fault = typeof code === 'string' ? faultOf(code, syscall) : undefined;
  if (fault === undefined) return findDiskFault(cause);
  return { fault, code: String(code), path: typeof path === 'string' ? path : undefined };
}

/** What errors of the system and of SQLite tell beside their words. */
function fieldsOf(error: object): Readonly<Record<'code' | 'path' | 'syscall' | 'cause', unknown>> {
  const field = (name: string): unknown => Reflect.get(error, name);
  return { code: field('code'), path: field('path'), syscall: field('syscall'), cause: field('cause') };
}

const OF_SOCKETS = new Set<unknown>(['listen', 'bind', 'connect', 'accept', 'getaddrinfo']);

/** A socket may be refused as well, which says nothing of the disk. */
function faultOf(code: string, syscall: unknown): DiskFault | undefined {
  if (code.startsWith('SQLITE_')) return SQLITE_CODES.find(([prefix]) => code.startsWith(prefix))?.[1];
  const fault = SYSTEM_CODES[code];
  return fault === 'not_permitted' && OF_SOCKETS.has(syscall) ? undefined : fault;
}

const REMEDIES: Readonly<Record<DiskFault, string>> = {
  full: 'Make room on the disk that holds SVC_HOME.',
  damaged: 'state.db is damaged: stop the service, and put back a copy of it or move it away.',
  not_permitted: 'Let this user write to SVC_HOME, and see that its disk is not read-only.',
  cannot_open: 'See that state.db is a file, and that this user may read and write it and its folder.',
  wrong_kind: 'In SVC_HOME there is a file where a folder should be, or a folder where a file should be: move it away.',
  too_many_open_files: 'Let the service open more files ("ulimit -n").',
  busy: 'Another program holds state.db: wait until it is done, or end it.',
  failed: "Look at the system's log, and check the disk that holds SVC_HOME.",
};

/** What the owner of `SVC_HOME` can do, as a sentence. */
export function remedyOf(fault: DiskFault): string {
  return REMEDIES[fault];
}

/** How answers name a fault: `storage_full`. */
export function reasonOf(fault: DiskFault): string {
  return `storage_${fault}`;
}

/** The remedy for what an answer named; undefined where that is no fault of a disk. */
export function findRemedy(reason: string): string | undefined {
  return Object.entries(REMEDIES).find(([fault]) => reason === `storage_${fault}`)?.[1];
}
