/**
 * Whose process has the other end of a loopback connection. A loopback address says only that the caller is on this
 * machine: another user's program, a proxy's worker and root's forwarder are there, too.
 */
import type { Socket } from 'node:net';

export type PeerProcess =
  /** One of our own user. */
  | { readonly kind: 'own' }
  /** One of another user; nobody's any more where there is no `uid`. */
  | { readonly kind: 'other'; readonly uid?: number }
  /** This system does not tell. */
  | { readonly kind: 'untold' };

export interface PeerProcesses {
  /** False where every answer is `untold`. */
  readonly areTold: boolean;
  /** Of a connection that was accepted here. Found out once for each connection; never rejects. */
  of(socket: Socket): Promise<PeerProcess>;
}

/** The two ends of an accepted connection, as its socket names them. */
export interface SocketPair {
  readonly peerAddress: string;
  readonly peerPort: number;
  readonly localAddress: string;
  readonly localPort: number;
}

/**
 * Finds the user whose process has the peer's end; `undefined` where nobody has it.
 * @param isOpen asked at any time: nobody waits for the peer of a connection that has ended
 */
export type FindPeerUid = (pair: SocketPair, isOpen: () => boolean) => Promise<number | undefined>;

export const untoldPeers: PeerProcesses = {
  areTold: false,
  of: () => Promise.resolve({ kind: 'untold' }),
};

/** @param options.uid our own user's */
export function createPeerProcesses({
  uid,
  findUid,
}: {
  readonly uid: number;
  readonly findUid: FindPeerUid;
}): PeerProcesses {
  const known = new WeakMap<Socket, Promise<PeerProcess>>();
  const ask = async (socket: Socket): Promise<PeerProcess> => {
    const pair = pairOf(socket);
    // What could not be found out is not ours: a full table of open files must not make an owner of anybody.
    const isOpen = (): boolean => !socket.destroyed;
    const found = pair === undefined ? undefined : await findUid(pair, isOpen).catch(() => undefined);
    if (found === undefined) return { kind: 'other' };
    return found === uid ? { kind: 'own' } : { kind: 'other', uid: found };
  };
  return {
    areTold: true,
    of(socket) {
      const peer = known.get(socket) ?? ask(socket);
      known.set(socket, peer);
      return peer;
    },
  };
}

/** `undefined` for a connection that is closed by now. */
export function pairOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): SocketPair | undefined {
  if (remoteAddress === undefined || remotePort === undefined) return undefined;
  if (localAddress === undefined || localPort === undefined) return undefined;
  return { peerAddress: remoteAddress, peerPort: remotePort, localAddress, localPort };
}
