/** Users of this machine besides root, by numbers that belong to no account. */
import { chown, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const [OWNER, STRANGER] = [64_101, 64_102] as const;

/** Put before a command, it runs the command as this user. */
export function as(uid: number): readonly string[] {
  return uid === 0 ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'];
}

/** A folder that is this user's alone. */
export async function homeOf(uid: number): Promise<string> {
  const home = await mkdtemp(join(tmpdir(), 'postern-user-'));
  await chown(home, uid, uid);
  return home;
}
