/** Whether others can read or change what the service keeps. */
import { stat } from 'node:fs/promises';
import type { Check, Finding } from './check.ts';

const GROUP_AND_OTHERS = 0o077;
const WRITE = 0o022;

export const homePermissions: Check = {
  name: 'home',
  async run({ home }) {
    const found = await stat(home).catch(() => undefined);
    if (found === undefined) return { state: 'ok', message: `${home} will be made at the first start` };
    const user = process.getuid?.();
    if (user === undefined) return { state: 'ok', message: home };
    return findingOf(home, { mode: found.mode, isOurs: found.uid === user });
  },
};

function findingOf(home: string, { mode, isOurs }: { readonly mode: number; readonly isOurs: boolean }): Finding {
  if (!isOurs) {
    return {
      state: 'failed',
      message: `${home} belongs to another user`,
      remedy: 'Run as that user, or set SVC_HOME to a folder of your own.',
    };
  }
  if ((mode & GROUP_AND_OTHERS) === 0) return { state: 'ok', message: `${home} is for its owner alone` };
  return {
    state: (mode & WRITE) === 0 ? 'warning' : 'failed',
    message: `${home} can be ${(mode & WRITE) === 0 ? 'read' : 'changed'} by other users of this machine`,
    remedy: `chmod 700 ${home}`,
  };
}
