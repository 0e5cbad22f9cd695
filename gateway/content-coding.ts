/**
 * Bodies that come compressed (RFC 9110, 8.4): unpacked as they come, and bounded by what they unpack to, so that little
 * that is sent can't become much that is held.
 */
import type { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { BodyLease } from './body-budget.ts';
import { bodyTooLarge } from './body.ts';
import { RequestError } from './errors.ts';

const MIB = 1024 * 1024;

/** RFC 9110, 8.4.1.3: the other name of gzip. */
const SAME: Readonly<Record<string, string>> = { 'x-gzip': 'gzip' };

interface Coding {
  readonly name: string;
  /** Made when the first such body comes: Node's part for it is not loaded before. */
  readonly decoder: () => Transform;
  /** Of what it has unpacked it keeps as much again, twice, up to so much. */
  readonly maxWindowBytes: number;
}

const zlib = () => process.getBuiltinModule('node:zlib');

const CODINGS: readonly Coding[] = [
  // RFC 1951, 2: the window has 32 KiB.
  { name: 'gzip', decoder: () => zlib().createGunzip(), maxWindowBytes: 0 },
  { name: 'deflate', decoder: () => zlib().createInflate(), maxWindowBytes: 0 },
  // RFC 7932, 9.1: it grows with what there is, to 16 MiB.
  { name: 'br', decoder: () => zlib().createBrotliDecompress(), maxWindowBytes: 16 * MIB },
];

const NAMES = CODINGS.map(({ name }) => name).join(', ');

/**
 * @param header `Content-Encoding`
 * @returns undefined for a body that is sent as it is
 * @throws {RequestError} `unsupported_media_type`, naming those that are read (RFC 9110, 15.5.16)
 */
export function contentCoding(header: string | undefined): Coding | undefined {
  const name = (header ?? '').trim().toLowerCase();
  if (name === '' || name === 'identity') return undefined;
  const coding = CODINGS.find((one) => one.name === (SAME[name] ?? name));
  if (coding !== undefined) return coding;
  throw new RequestError('unsupported_media_type', `Send the body as it is, or compressed with one of ${NAMES}.`, {
    headers: { 'accept-encoding': NAMES },
  });
}

interface UnpackOptions {
  /** Undefined for pieces that are as they should be. */
  readonly coding: Coding | undefined;
  /** Of what they unpack to. */
  readonly maxBytes: number;
  /** For the memory that unpacking takes. What comes out of it is its reader's to count. */
  readonly lease: BodyLease;
}

/**
 * The pieces as they were before they were compressed, and no further than they are asked for.
 * @throws {RequestError} `body_too_large` as soon as there is more than may be; `bad_request` for what can't be unpacked
 * @throws what the pieces throw, and what the lease refuses
 */
export function unpacked<Pieces extends AsyncIterable<Uint8Array> | Iterable<Uint8Array>>(
  pieces: Pieces,
  { coding, ...limits }: UnpackOptions,
): Pieces | AsyncGenerator<Uint8Array> {
  return coding === undefined ? pieces : decoded(pieces, coding, limits);
}

async function* decoded(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  coding: Coding,
  { maxBytes, lease }: Omit<UnpackOptions, 'coding'>,
): AsyncGenerator<Uint8Array> {
  const decoder = coding.decoder();
  // What goes wrong on the way comes out of the decoder.
  pipeline(pieces, decoder).catch(() => undefined);
  let length = 0;
  try {
    for await (const piece of bytesOf(decoder)) {
      const windowBefore = windowBytes(coding, length);
      length += piece.length;
      if (length > maxBytes) throw bodyTooLarge(maxBytes);
      await lease.take(windowBytes(coding, length) - windowBefore);
      yield piece;
    }
  } catch (error) {
    throw error === decoder.errored && !(error instanceof RequestError) ? notValid(coding, error) : error;
  } finally {
    decoder.destroy();
  }
}

/** What a stream without an encoding gives is bytes. */
function bytesOf(decoder: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  return decoder;
}

function windowBytes({ maxWindowBytes }: Coding, length: number): number {
  return Math.min(2 * length, maxWindowBytes);
}

function notValid({ name }: Coding, cause: unknown): RequestError {
  return new RequestError('bad_request', `The body is not valid ${name}, as its Content-Encoding says.`, { cause });
}
