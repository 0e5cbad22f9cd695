/**
 * Linux's table of TCP sockets (proc_net_tcp(5)), as far as it says whose a connection's other end is:
 *
 *     sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
 *      0: 0100007F:A3C4 0100007F:0539 01 00000000:00000000 00:00000000 00000000  1000        0 21437 …
 *
 * Addresses are words of four bytes in this machine's own byte order. It is the table of this network namespace, which is
 * all that a loopback connection can come from, and users are those of this user namespace.
 */
import { isIPv4 } from 'node:net';
import { endianness } from 'node:os';
import type { FindPeerUid, SocketPair } from './peer-process.ts';

/** What of a table is read at the most: some 200,000 sockets. Who is not among them is not found. */
const MAX_TABLE_BYTES = 32 * 1024 * 1024;

/** A table that changes while it is read may leave out a row, so nobody is missing before it was read twice. */
const ATTEMPTS = 2;

type TableName = 'tcp' | 'tcp6';

/** Reads a table piece by piece. */
export type ReadTable = (name: TableName) => AsyncIterable<Uint8Array>;

interface FinderOptions {
  readonly readTable: ReadTable;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly sleep: (forMs: number) => Promise<void>;
}

interface Question {
  readonly pair: SocketPair;
  readonly isOpen: () => boolean;
  readonly settle: (uid: number | undefined) => void;
}

/**
 * One reading serves everybody who asked before it began, and readings take no more than half of the time, however many
 * connections come.
 */
export function createPeerUidFinder(options: FinderOptions): FindPeerUid {
  const { elapsed, sleep } = options;
  let waiting: Question[] = [];
  let isReading = false;
  async function readForAll(): Promise<void> {
    isReading = true;
    while (waiting.length > 0) {
      const asked = waiting;
      waiting = [];
      const beganAtMs = elapsed();
      await answer(asked, options.readTable);
      await sleep(elapsed() - beganAtMs);
    }
    isReading = false;
  }
  return (pair, isOpen) =>
    new Promise((resolve) => {
      waiting.push({ pair, isOpen, settle: resolve });
      if (!isReading) void readForAll();
    });
}

async function answer(asked: readonly Question[], readTable: ReadTable): Promise<void> {
  let open = asked;
  for (let attempt = 0; attempt < ATTEMPTS && open.length > 0; attempt++) {
    for (const name of ['tcp', 'tcp6'] as const) {
      open = stillOpen(open);
      const found = await search(open, name, readTable).catch(() => new Map<Question, number>());
      for (const [question, uid] of found) question.settle(uid);
      open = open.filter((question) => !found.has(question));
    }
  }
  for (const question of open) question.settle(undefined);
}

/** A peer that has left has no row any more, and would be looked for to the end of each table. */
function stillOpen(questions: readonly Question[]): readonly Question[] {
  for (const { isOpen, settle } of questions) if (!isOpen()) settle(undefined);
  return questions.filter(({ isOpen }) => isOpen());
}

/** Those of the questions that the table answers. */
async function search(
  asked: readonly Question[],
  name: TableName,
  readTable: ReadTable,
): Promise<ReadonlyMap<Question, number>> {
  const byEnds = new Map(asked.map((question) => [endsOf(question.pair, name), question]));
  byEnds.delete(undefined);
  const found = new Map<Question, number>();
  if (byEnds.size === 0) return found;
  for await (const lines of wholeLines(readTable(name))) {
    for (const line of lines) {
      const row = rowOf(line);
      const question = row && byEnds.get(row.ends);
      if (row !== undefined && question !== undefined) found.set(question, row.uid);
    }
    if (found.size === byEnds.size) break;
  }
  return found;
}

async function* wholeLines(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<readonly string[]> {
  let rest = '';
  let bytes = 0;
  for await (const piece of pieces) {
    const lines = (rest + Buffer.from(piece).toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    yield lines;
    bytes += piece.length;
    if (bytes > MAX_TABLE_BYTES) return;
  }
}

const ROW = /^ *\d+: ([0-9A-F]+:[0-9A-F]{4} [0-9A-F]+:[0-9A-F]{4}) (?:\S+ +){4}(\d+) +\d+ (\d+)/;

/** `undefined` for the heading, and for what no process has any more: the system shows those as root's. */
function rowOf(line: string): { readonly ends: string; readonly uid: number } | undefined {
  const [, ends, uid, inode] = ROW.exec(line) ?? [];
  return ends === undefined || inode === '0' ? undefined : { ends, uid: Number(uid) };
}

/**
 * How the row of the peer's socket begins. A program may speak IPv4 on an IPv6 socket, whose addresses are mapped ones.
 * @returns `undefined` where that socket can't be in this table
 */
function endsOf(pair: SocketPair, name: TableName): string | undefined {
  const peer = hexAddress(pair.peerAddress, name);
  const local = hexAddress(pair.localAddress, name);
  return peer && local && `${peer}:${hexPort(pair.peerPort)} ${local}:${hexPort(pair.localPort)}`;
}

const MAPPED_PREFIX = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255];
const IPV6_LOOPBACK = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

function hexAddress(address: string, name: TableName): string | undefined {
  if (address === '::1') return name === 'tcp6' ? hexWords(IPV6_LOOPBACK) : undefined;
  const plain = address.toLowerCase().replace(/^::ffff:/, '');
  if (!isIPv4(plain)) return undefined;
  const bytes = plain.split('.').map(Number);
  return hexWords(name === 'tcp6' ? [...MAPPED_PREFIX, ...bytes] : bytes);
}

function hexWords(bytes: readonly number[]): string {
  const buffer = Buffer.from(bytes);
  return (endianness() === 'LE' ? buffer.swap32() : buffer).toString('hex').toUpperCase();
}

function hexPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0');
}
