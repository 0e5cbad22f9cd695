/** Finds out, once, whether this system tells whose process a connection comes from, and how. */
import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createPeerUidFinder, type ReadTable } from './linux-sockets.ts';
import { createPeerProcesses, pairOf, untoldPeers, type FindPeerUid, type PeerProcesses } from './peer-process.ts';

/**
 * On Linux by trying it on a connection to itself: systems that only look like Linux, and containers without `/proc/net`,
 * don't tell. On macOS and Windows no system call that Node offers tells it.
 */
export async function openPeerProcesses(): Promise<PeerProcesses> {
  const uid = process.geteuid?.();
  if (process.platform !== 'linux' || uid === undefined) return untoldPeers;
  const findUid = createPeerUidFinder({ readTable, elapsed: () => performance.now(), sleep });
  const [isOurs, isOursAlone] = await Promise.all([findsItself(findUid, uid), isOneUser(uid)]);
  return isOurs && isOursAlone ? createPeerProcesses({ uid, findUid }) : untoldPeers;
}

const readTable: ReadTable = (name) => createReadStream(`/proc/net/${name}`);

async function findsItself(findUid: FindPeerUid, uid: number): Promise<boolean> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1');
  try {
    const [accepted] = await Promise.all([acceptedBy(server), once(client, 'connect')]);
    const pair = pairOf(accepted);
    accepted.on('error', () => undefined).unref();
    const found = pair === undefined ? undefined : await findUid(pair);
    accepted.destroy();
    return found === uid;
  } finally {
    client.destroy();
    server.close();
  }
}

function acceptedBy(server: ReturnType<typeof createServer>): Promise<Socket> {
  return new Promise((resolve) => server.once('connection', resolve));
}

/** In a user namespace, all users who have no number there are shown with one and the same. */
async function isOneUser(uid: number): Promise<boolean> {
  const [overflow, map] = await Promise.all([
    readFile('/proc/sys/kernel/overflowuid', 'utf8').catch(() => '65534'),
    readFile('/proc/self/uid_map', 'utf8').catch(() => ''),
  ]);
  return uid !== Number(overflow) || /^\s*0\s+0\s+4294967295\s*$/.test(map);
}
