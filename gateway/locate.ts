/** Where each request comes from: what the guard judges, with what only the system and this run of the server know. */
import type { IncomingMessage } from 'node:http';
import { isForwarded, isLoopbackAddress, provenanceOf, type GuardSettings, type Provenance } from './guard.ts';
import type { PeerProcess, PeerProcesses } from './peer-process.ts';
import { isRunToken, RUN_TOKEN_HEADER } from './run-token.ts';
import { sourceOf } from './source.ts';

export interface Located extends Provenance {
  /** Whom limits count the request under. */
  readonly source: string;
  /** The other end is on this machine, and the system knows of no process that has it: who had it may have left. */
  readonly isOrphan: boolean;
}

interface LocateOptions {
  readonly guard: GuardSettings;
  readonly peers: PeerProcesses;
  readonly runToken: string;
}

export type Locate = (request: IncomingMessage) => Promise<Located>;

export function createLocator(options: LocateOptions): Locate {
  return async (request) => {
    const { headers, socket } = request;
    const peerAddress = socket.remoteAddress;
    const peer = await peerOf(request, options);
    return {
      ...provenanceOf({ peerAddress, peer, headers }, options.guard),
      source: sourceOf(peerAddress) + remark(request, peer),
      isOrphan:
        isLoopbackAddress(peerAddress) && !isForwarded(headers) && peer.kind === 'other' && peer.uid === undefined,
    };
  };
}

/** Whoever shows the token of the run could read its file, which is the owner's alone. */
async function peerOf({ headers, socket }: IncomingMessage, { peers, runToken }: LocateOptions): Promise<PeerProcess> {
  if (!isLoopbackAddress(socket.remoteAddress) || isForwarded(headers)) return { kind: 'other' };
  return isRunToken(headers[RUN_TOKEN_HEADER], runToken) ? { kind: 'own' } : peers.of(socket);
}

/** All on this machine come from one address; what strangers do there must not count against the owner, or each other. */
function remark({ headers, socket }: IncomingMessage, peer: PeerProcess): string {
  if (!isLoopbackAddress(socket.remoteAddress)) return '';
  if (isForwarded(headers)) return ' (forwarded)';
  if (peer.kind !== 'other') return '';
  return peer.uid === undefined ? ' (no process)' : ` (uid ${peer.uid})`;
}
