/** Which user the service is. */
import { userInfo } from 'node:os';
import type { Check } from './check.ts';

export const user: Check = {
  name: 'user',
  run() {
    if (process.getuid?.() !== 0) return { state: 'ok', message: userInfo().username };
    return {
      state: 'warning',
      message: 'root: every program that root runs, a proxy or forwarder too, counts as you',
      remedy: 'Run the service as the user whose programs use it, and proxies as another one.',
    };
  },
};
