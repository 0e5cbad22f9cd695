/**
 * `SVC_HOME` is its owner's alone, also where it was there before us: made by hand, unpacked from a backup, copied from
 * another machine. What is ours is put right; what is another's is refused, since whoever owns it can read it anyway.
 */
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir, readlink, realpath, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, sep } from 'node:path';
import { isRecord } from '../json.ts';
import { HomeError } from './home-error.ts';

/** What we make in there; `docs/storage.md` says what each is. Whatever else lies there is none of our business. */
const FILES = [
  'settings.json',
  'run.json',
  'run.lock',
  'run.lock-journal',
  'change.lock',
  'change.lock-journal',
  'identity.json',
  'vault.json',
  'vault.key',
  'paired.json',
  'state.db',
  'state.db-wal',
  'state.db-shm',
  'state.db-journal',
];

/** Those that tell a folder of ours from another program's, which may well have a settings.json. */
const MARKS: ReadonlySet<string> = new Set(['state.db', 'identity.json', 'change.lock', 'paired.json']);

const GROUP_AND_OTHERS = 0o077;
const WRITE_OF_GROUP_AND_OTHERS = 0o022;
/** Of a folder in which everybody may make files, such as /tmp, and nobody may move another's. */
const STICKY = 0o1000;
const FOLDER_MODE = 0o700;
const FILE_MODE = 0o600;
const ROOT = 0;

/**
 * Takes from others what they may do with the folder and the files in it. Nothing has to be there yet. Where the system
 * knows no such modes (Windows), nothing is done.
 * @param user our uid, where the system has such
 * @returns the paths whose mode was put right
 * @throws {HomeError} where one of them belongs to another user, is a link that another user may have made or that leads
 * to where others can write, or the folder is shared, another program's, or no folder; nothing was changed then, but for
 * what somebody changed at that very moment
 */
export async function secureHome(home: string, user: number | undefined): Promise<readonly string[]> {
  if (user === undefined) return [];
  const folder = await ifThere(stat(home));
  if (folder === undefined) return [];
  assertUsable(home, folder);
  const link = await ifThere(lstat(home));
  if (link !== undefined) assertOurs(home, link, user);
  assertOurs(home, folder, user);
  if (link?.isSymbolicLink() === true) await assertSafeWay(home, user);
  if (isShared(folder)) await assertForUs(home);
  const files = await Promise.all(FILES.map((name) => findFile(join(home, name), { user, home, folder })));
  // The folder goes first: from then on nobody else can put anything in a file's place.
  if (isShared(folder)) await restrict(home, { mode: FOLDER_MODE, flags: constants.O_DIRECTORY, user });
  const shared = files.flatMap((file) => file ?? []);
  for (const path of shared) await restrict(path, { mode: FILE_MODE, flags: constants.O_NOFOLLOW, user });
  return isShared(folder) ? [home, ...shared] : shared;
}

const isShared = ({ mode }: Stats): boolean => (mode & GROUP_AND_OTHERS) !== 0;

/** What is in use by others, such as /etc or a folder of projects, is not taken from them because of a slip. */
async function assertForUs(home: string): Promise<void> {
  const names = await readdir(home);
  if (names.every((name) => FILES.includes(name)) || names.some((name) => MARKS.has(name))) return;
  throw new HomeError(
    `${home} has files of something else in it, and other users may read it. Set SVC_HOME to a new or an empty folder; ` +
      `or, if it is to be this one and yours alone, "chmod 700 ${home}" and try again.`,
  );
}

interface Home {
  readonly home: string;
  readonly folder: Stats;
  readonly user: number;
}

/** @returns the path of a file whose mode has to be put right */
async function findFile(path: string, home: Home): Promise<string | undefined> {
  const found = await ifThere(lstat(path));
  if (found === undefined) return undefined;
  if (found.isSymbolicLink()) {
    await assertSafeLink(path, found, home);
    // What it leads to may be anything, and somebody else's work may depend on its mode.
    return undefined;
  }
  assertOurs(path, found, home.user);
  return isShared(found) ? path : undefined;
}

interface Restriction {
  readonly mode: number;
  /** Of open(2). */
  readonly flags: number;
  readonly user: number;
}

/** Opens it and looks again, so that nothing can be exchanged for it in between. It may be gone by now. */
async function restrict(path: string, { mode, flags, user }: Restriction): Promise<void> {
  const handle = await ifThere(open(path, constants.O_RDONLY | constants.O_NONBLOCK | flags));
  if (handle === undefined) return;
  try {
    assertOurs(path, await handle.stat(), user);
    await handle.chmod(mode);
  } finally {
    await handle.close();
  }
}

/** An owner may keep a file on another disk. */
async function assertSafeLink(path: string, link: Stats, { home, folder, user }: Home): Promise<void> {
  if ((folder.mode & WRITE_OF_GROUP_AND_OTHERS) !== 0) {
    throw new HomeError(
      `${path} is a link, and others could write to ${home}, so anyone may have put it there. See where it leads ` +
        `("ls -l ${path}") and delete it; or, if it is your own, "chmod go-w ${home}" and try again.`,
    );
  }
  assertOurs(path, link, user);
  const target = await ifThere(realpath(path));
  if (target === undefined) throw new HomeError(`${path} is a link that leads nowhere. Mend it, or delete it.`);
  assertOurs(target, await stat(target), user);
  await assertSafeWay(path, user);
}

/** @throws {HomeError} where others could make a link lead somewhere else, or change what it leads to */
async function assertSafeWay(path: string, user: number): Promise<void> {
  const exposed = await findExposed(path, user);
  if (exposed === undefined) return;
  throw new HomeError(
    `${path} is a link to ${await realpath(path)}, and others can change ${exposed}. Keep it where only you can write, ` +
      'or put what it leads to in place of the link.',
  );
}

/**
 * Follows a path as the system does, over all links. It has to lead somewhere.
 * @returns the first folder, link or file on the way that others can change, or put another one in the place of
 */
async function findExposed(path: string, user: number): Promise<string | undefined> {
  let folder: string = sep;
  let names = namesIn(join(await realpath(dirname(path)), basename(path)));
  for (;;) {
    const [name, ...later] = names;
    if (name === undefined) return undefined;
    const next = join(folder, name);
    const found = await lstat(next);
    if (isExposed(found, user)) return next;
    const target = found.isSymbolicLink() ? await readlink(next) : undefined;
    names = [...namesIn(target ?? ''), ...later];
    if (target === undefined) folder = next;
    else if (isAbsolute(target)) folder = sep;
  }
}

function namesIn(path: string): readonly string[] {
  return path.split(sep).filter((name) => name !== '' && name !== '.');
}

function isExposed(found: Stats, user: number): boolean {
  if (found.uid !== user && found.uid !== ROOT) return true;
  const isSticky = found.isDirectory() && (found.mode & STICKY) !== 0;
  return !found.isSymbolicLink() && (found.mode & WRITE_OF_GROUP_AND_OTHERS) !== 0 && !isSticky;
}

/** @returns undefined where there is no such file, or a link does not lead to one */
async function ifThere<Result>(looking: Promise<Result>): Promise<Result | undefined> {
  try {
    return await looking;
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

/** @throws {HomeError} for what is another user's; whoever set up the machine may have made a link for us */
function assertOurs(path: string, found: Stats, user: number): void {
  if (found.uid === user || (found.isSymbolicLink() && found.uid === ROOT)) return;
  throw new HomeError(
    `${path} belongs to another user (uid ${found.uid}). Run Postern as that user, change its owner, or set SVC_HOME ` +
      'to a folder of your own.',
  );
}
