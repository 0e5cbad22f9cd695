/** Finds out, once, whether this system tells whose process a connection comes from, and how. */
import { once } from 'node:events';
import { closeSync, openSync, readSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { takeTurn } from '../core/turns.ts';
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

/** The most that the kernel gives of such a table in one call; it takes some 25 µs. */
const PAGE_BYTES = 4096;
const PAGES_PER_TURN = 16;

/** Several pages in a turn: a stream has one, and on a busy service a long table would take it a second and more. */
const readTable: ReadTable = async function* (name) {
  const file = openSync(`/proc/net/${name}`, 'r');
  try {
    for (let isAtEnd = false; !isAtEnd;) {
      const pieces: Buffer[] = [];
      while (!isAtEnd && pieces.length < PAGES_PER_TURN) {
        const page = Buffer.alloc(PAGE_BYTES);
        const length = readSync(file, page);
        pieces.push(page.subarray(0, length));
        isAtEnd = length === 0;
      }
      yield Buffer.concat(pieces);
      await takeTurn();
    }
  } finally {
    closeSync(file);
  }
};

async function findsItself(findUid: FindPeerUid, uid: number): Promise<boolean> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const client = connect(typeof address === 'object' && address !== null ? address.port : 0, '127.0.0.1');
  try {
    const [accepted] = await Promise.all([acceptedBy(server), once(client, 'connect')]);
    const pair = pairOf(accepted);
    accepted.on('error', () => undefined).unref();
    const found = pair === undefined ? undefined : await findUid(pair, () => true);
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
