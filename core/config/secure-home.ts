/**
 * `SVC_HOME` is its owner's alone, also where it was there before us: made by hand, unpacked from a backup, copied from
 * another machine. What is ours is put right; what is another's is refused, since whoever owns it can read it anyway.
 */
import type { Stats } from 'node:fs';
import { chmod, lstat, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord } from '../json.ts';
import { HomeError } from './home-error.ts';

/** What we make in there; `docs/storage.md` says what each is. Whatever else lies there is none of our business. */
const FILES = [
  'settings.json',
  'run.json',
  'run.lock',
  'change.lock',
  'identity.json',
  'vault.json',
  'vault.key',
  'paired.json',
  'state.db',
  'state.db-wal',
  'state.db-shm',
];

const GROUP_AND_OTHERS = 0o077;
/** Of a folder in which everybody may make files, such as /tmp. */
const STICKY = 0o1000;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;

/**
 * Takes from others what they may do with the folder and the files in it. Nothing has to be there yet. Where the system
 * knows no such modes (Windows), nothing is done.
 * @param user our uid, where the system has such
 * @returns the paths whose mode was put right
 * @throws {HomeError} where one of them belongs to another user, or the folder is shared or no folder
 */
export async function secureHome(home: string, user: number | undefined): Promise<readonly string[]> {
  if (user === undefined) return [];
  const folder = await statOf(home, stat);
  if (folder === undefined) return [];
  assertUsable(home, folder);
  const link = await statOf(home, lstat);
  // The folder goes last: whoever is refused for one of the files finds nothing changed.
  const found = await Promise.all(FILES.map(async (name) => findOpen(join(home, name), FILE_MODE, user)));
  const open = [await findOpen(home, FOLDER_MODE, user), ...found].flatMap((one) => one ?? []);
  if (link !== undefined && link.uid !== user && link.uid !== ROOT) throw foreign(home, link.uid);
  for (const { path, mode } of open) await chmod(path, mode);
  return open.map(({ path }) => path);
}

const ROOT = 0;

interface OpenPath {
  readonly path: string;
  /** That it should have. */
  readonly mode: number;
}

/** @throws {HomeError} for what is another user's. @returns undefined for what is not there, or only for us */
async function findOpen(path: string, mode: number, user: number): Promise<OpenPath | undefined> {
  const found = await statOf(path, stat);
  if (found === undefined) return undefined;
  if (found.uid !== user) throw foreign(path, found.uid);
  if ((found.mode & GROUP_AND_OTHERS) === 0) return undefined;
  // What a link leads to may be anything, and somebody else's work may depend on its mode.
  return mode === FILE_MODE && (await lstat(path)).isSymbolicLink() ? undefined : { path, mode };
}

async function statOf(path: string, look: (path: string) => Promise<Stats>): Promise<Stats | undefined> {
  try {
    return await look(path);
  } catch (error) {
    if (isRecord(error) && error['code'] === 'ENOENT') return undefined;
    throw error;
  }
}

function assertUsable(home: string, folder: Stats): void {
  if (!folder.isDirectory()) {
    throw new HomeError(`${home} is not a folder. Move it away, or set SVC_HOME to a folder of your own.`);
  }
  if ((folder.mode & STICKY) !== 0) {
    throw new HomeError(`${home} is a folder that all users share. Set SVC_HOME to a folder of your own.`);
  }
}

function foreign(path: string, uid: number): HomeError {
  return new HomeError(
    `${path} belongs to another user (uid ${uid}). Run Postern as that user, change its owner, or set SVC_HOME to a ` +
      'folder of your own.',
  );
}
