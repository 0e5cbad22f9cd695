/** Whether the service can tell its owner's programs from those of others on this machine. */
import { openPeerProcesses } from '../../gateway/open-peer-processes.ts';
import type { Check } from './check.ts';

export const peerProcesses: Check = {
  name: 'processes',
  async run() {
    if ((await openPeerProcesses()).areTold) {
      return { state: 'ok', message: 'programs of other users on this machine are told apart, and need a key' };
    }
    return {
      state: 'warning',
      message: 'this system does not tell whose process a connection comes from: every program here counts as you',
      remedy: 'To ask all of them for a key: postern settings set access.requireKeyOnLoopback true',
    };
  },
};
