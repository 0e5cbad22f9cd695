/** Which user the service is. */
import { userInfo } from 'node:os';
import type { Check } from './check.ts';

export const user: Check = {
  name: 'user',
  run() {
    if (process.getuid?.() !== 0) return { state: 'ok', message: userInfo().username };
    return {
      state: 'warning',
      message: 'root: every program that root runs, a proxy too, is the same user as the service',
      remedy: 'Run the service under a user of its own.',
    };
  },
};
