/**
 * What a packet capture holds (libpcap's file format, Ethernet, IPv4 and TCP): the bytes of each direction of each
 * connection, put together again, since what is looked for could lie across two packets.
 */
import { readFile } from 'node:fs/promises';

const FILE_HEADER_BYTES = 24;
const PACKET_HEADER_BYTES = 16;
const ETHERNET_BYTES = 14;
const [IPV4, TCP] = [0x0800, 6];

interface Segment {
  readonly sequence: number;
  readonly payload: Buffer;
}

/** @returns one buffer for each direction of each connection, by its two ends */
export async function readTcpStreams(path: string): Promise<ReadonlyMap<string, Buffer>> {
  const file = await readFile(path);
  if (file.readUInt32LE(0) !== 0xa1b2c3d4) throw new RangeError('no capture of this machine');
  const flows = new Map<string, Segment[]>();
  for (let at = FILE_HEADER_BYTES; at + PACKET_HEADER_BYTES <= file.length;) {
    const [captured, original] = [file.readUInt32LE(at + 8), file.readUInt32LE(at + 12)];
    if (captured !== original) throw new RangeError('a packet was not captured whole');
    at += PACKET_HEADER_BYTES;
    note(flows, file.subarray(at, at + captured));
    at += captured;
  }
  return new Map([...flows].map(([name, segments]) => [name, joined(segments)]));
}

function note(flows: Map<string, Segment[]>, frame: Buffer): void {
  if (frame.readUInt16BE(12) !== IPV4) return;
  const packet = frame.subarray(ETHERNET_BYTES);
  if (packet[9] !== TCP) return;
  // Behind the length are the bytes that fill up a short Ethernet frame.
  const segment = packet.subarray((packet[0]! & 15) * 4, packet.readUInt16BE(2));
  const payload = segment.subarray((segment[12]! >> 4) * 4);
  if (payload.length === 0) return;
  const [from, to] = [packet.subarray(12, 16).join('.'), packet.subarray(16, 20).join('.')];
  const name = `${from}:${segment.readUInt16BE(0)} > ${to}:${segment.readUInt16BE(2)}`;
  const segments = flows.get(name) ?? [];
  segments.push({ sequence: segment.readUInt32BE(4), payload });
  flows.set(name, segments);
}

/** In the order of their numbers, each byte once. */
function joined(segments: readonly Segment[]): Buffer {
  const first = segments[0]?.sequence ?? 0;
  const placed = segments.map(({ sequence, payload }) => ({ at: (sequence - first) | 0, payload }));
  const pieces: Buffer[] = [];
  let end = -Infinity;
  for (const { at, payload } of placed.toSorted((a, b) => a.at - b.at)) {
    const isKnown = Math.max(0, Math.min(payload.length, end - at));
    pieces.push(payload.subarray(isKnown));
    end = Math.max(end, at + payload.length);
  }
  return Buffer.concat(pieces);
}
