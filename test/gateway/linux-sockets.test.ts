/** What Linux's table of sockets says of a connection's other end, and how often it is read for that. */
import { endianness } from 'node:os';
import { describe, expect, test } from 'vitest';
import { createPeerUidFinder, type ReadTable } from '../../gateway/linux-sockets.ts';
import type { SocketPair } from '../../gateway/peer-process.ts';

const HEADING =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                                                     ';
const row = (ends: string, uid: number, { state = '01', inode = 21_437 } = {}) =>
  `   7: ${ends} ${state} 00000000:00000000 00:00000000 00000000 ${String(uid).padStart(5)}        0 ${inode} 1 0000000000000000 20 4 30 10 -1`;

const V4: SocketPair = { peerAddress: '127.0.0.1', peerPort: 0xa3c4, localAddress: '127.0.0.1', localPort: 1337 };
const V4_ENDS = '0100007F:A3C4 0100007F:0539';
const V6: SocketPair = { ...V4, peerAddress: '::1', localAddress: '::1' };
const V6_ENDS = '00000000000000000000000001000000:A3C4 00000000000000000000000001000000:0539';
const MAPPED_ENDS = '0000000000000000FFFF00000100007F:A3C4 0000000000000000FFFF00000100007F:0539';
const reversed = V4_ENDS.split(' ').toReversed().join(' ');

interface Tables {
  readonly tcp?: readonly string[];
  readonly tcp6?: readonly string[];
}

const tableOf = (rows: readonly string[]) => `${[HEADING, ...rows].join('\n')}\n`;

function finderOf(tables: Tables, { pieceBytes = 4096, sleep = () => Promise.resolve() } = {}) {
  const readings: string[] = [];
  const readTable: ReadTable = async function* (name) {
    readings.push(name);
    const bytes = Buffer.from(tableOf(tables[name] ?? []));
    for (let at = 0; at < bytes.length; at += pieceBytes) yield bytes.subarray(at, at + pieceBytes);
  };
  return { find: finder({ readTable, sleep }), readings };
}

function finder({ readTable, sleep = () => Promise.resolve() }: { readTable: ReadTable; sleep?: () => Promise<void> }) {
  const find = createPeerUidFinder({ readTable, elapsed: () => 0, sleep });
  return (pair: SocketPair, isOpen = () => true) => find(pair, isOpen);
}

describe.runIf(endianness() === 'LE')('the row of the other end', () => {
  test.each<[string, SocketPair, Tables]>([
    ['over IPv4', V4, { tcp: [row(V4_ENDS, 1000)] }],
    [
      'over IPv4, by the address as an IPv6 socket names it',
      { ...V4, peerAddress: '::ffff:127.0.0.1' },
      { tcp: [row(V4_ENDS, 1000)] },
    ],
    ['over IPv4 from an IPv6 socket', V4, { tcp6: [row(MAPPED_ENDS, 1000)] }],
    ['over IPv6', V6, { tcp6: [row(V6_ENDS, 1000)] }],
    [
      'between our own end, other connections and a listener',
      V4,
      {
        tcp: [
          row('0100007F:0539 00000000:0000', 0, { state: '0A' }),
          row(reversed, 5),
          row('0100007F:A3C5 0100007F:0539', 6),
          row(V4_ENDS, 1000),
        ],
      },
    ],
    ['that has sent its end', V4, { tcp: [row(V4_ENDS, 1000, { state: '05' })] }],
    [
      'after one that has no process any more',
      V4,
      { tcp: [row(V4_ENDS, 0, { state: '06', inode: 0 }), row(V4_ENDS, 1000)] },
    ],
  ])('%s tells the user', async (_, pair, tables) => {
    expect(await finderOf(tables).find(pair)).toBe(1000);
    expect(await finderOf(tables, { pieceBytes: 1 }).find(pair)).toBe(1000);
  });

  test.each<[string, SocketPair, Tables]>([
    ['an empty table', V4, {}],
    ['our own end alone', V4, { tcp: [row(reversed, 1000)] }],
    ['a time-wait, which the system shows as root', V4, { tcp: [row(V4_ENDS, 0, { state: '06', inode: 0 })] }],
    ['the same ports between other addresses', V4, { tcp: [row('0200007F:A3C4 0100007F:0539', 1000)] }],
    ['the IPv4 row for an IPv6 connection', V6, { tcp: [row(V4_ENDS, 1000)], tcp6: [row(MAPPED_ENDS, 1000)] }],
    ['an address of the network', { ...V4, peerAddress: 'fd00::2' }, { tcp: [row(V4_ENDS, 1000)] }],
    ['a row that is cut off', V4, { tcp: [row(V4_ENDS, 1000).slice(0, 70)] }],
  ])('%s tells nobody', async (_, pair, tables) => {
    expect(await finderOf(tables).find(pair)).toBe(undefined);
  });

  test('a row that a changing table left out is found the second time', async () => {
    let readings = 0;
    const readTable: ReadTable = async function* () {
      readings += 1;
      yield Buffer.from(tableOf(readings > 2 ? [row(V4_ENDS, 1000)] : []));
    };
    const find = finder({ readTable });
    expect(await find(V4)).toBe(1000);
  });

  test('a table that cannot be read tells nobody', async () => {
    const readTable: ReadTable = async function* () {
      yield Buffer.from(HEADING);
      throw new Error('EMFILE');
    };
    const find = finder({ readTable });
    expect(await find(V4)).toBe(undefined);
  });
});

test('nothing is read for a connection that has ended, and no further than it lasts', async () => {
  const { find, readings } = finderOf({});
  expect(await find(V4, () => false)).toBe(undefined);
  expect(readings).toEqual([]);
  expect(await find(V4, () => readings.length === 0)).toBe(undefined);
  expect(readings).toEqual(['tcp']);
});

test.runIf(endianness() === 'LE')(
  'one reading serves all who asked before it began, and none who came later',
  async () => {
    const pairs = Array.from({ length: 300 }, (_, at) => ({ ...V4, peerPort: 1024 + at }));
    const ends = ({ peerPort }: SocketPair) =>
      `0100007F:${peerPort.toString(16).toUpperCase().padStart(4, '0')} 0100007F:0539`;
    let letOn = () => {};
    const paused = new Promise<void>((resolve) => (letOn = resolve));
    const { find, readings } = finderOf({ tcp: pairs.map((pair, at) => row(ends(pair), at)) }, { sleep: () => paused });
    expect(await find(pairs[0]!)).toBe(0);
    const others = Promise.all(pairs.slice(1).map((pair) => find(pair)));
    expect(readings).toEqual(['tcp']);
    letOn();
    expect(await others).toEqual(pairs.slice(1).map((_, at) => at + 1));
    expect(readings).toEqual(['tcp', 'tcp']);
  },
);
