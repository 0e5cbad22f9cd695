/** Whether the service can tell its owner's programs from those of others on this machine. */
import { openPeerProcesses } from '../../../gateway/open-peer-processes.ts';
import { UNTOLD_PEERS, UNTOLD_PEERS_REMEDY } from '../../untold-peers.ts';
import type { Check } from './check.ts';

export const peerProcesses: Check = {
  name: 'processes',
  async run() {
    if ((await openPeerProcesses()).areTold) {
      return { state: 'ok', message: 'programs of other users on this machine are told apart, and need a key' };
    }
    return {
      state: 'warning',
      message: UNTOLD_PEERS,
      remedy: UNTOLD_PEERS_REMEDY,
    };
  },
};
