/**
 * JSON (RFC 8259) out of the bytes as they arrive: a piece costs time in proportion to its own length, so that nobody
 * who reads a large text piece by piece stops for long, and a text with too much structure is refused in the middle,
 * before its values fill the memory. What it accepts, and what that means, is `JSON.parse`'s: the last of two equal keys
 * holds, `__proto__` is a key as any other, half a surrogate pair may be escaped.
 */
import { invalidJson, JsonError, JsonLimitError } from './json-error.ts';
import { JSON_LIMITS, type JsonLimits } from './json-limits.ts';
import { JsonTree } from './json-tree.ts';

/** 400 digits are more than any double has; JSON.parse would read, and round, millions. */
const MAX_NUMBER_BYTES = 1024;
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const LITERALS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
]);
const MAX_LITERAL_BYTES = 5;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/** A byte order mark within a string is a character of it. */
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

export class JsonReader {
  readonly #tree: JsonTree;
  readonly #limits: JsonLimits;
  /** The beginning of what the last piece broke off in: of a number, a word, an escape or a character. */
  #rest: Buffer = Buffer.alloc(0);
  /** What is there of the string that goes on. */
  #string: { text: string; bytes: number } | undefined;
  /** Bytes before those that are looked at. */
  #offset = 0;

  constructor(limits: JsonLimits = JSON_LIMITS) {
    this.#limits = limits;
    this.#tree = new JsonTree(limits);
  }

  /** Values and keys so far. */
  get nodes(): number {
    return this.#tree.nodes;
  }

  /** @throws {JsonError} */
  push(piece: Uint8Array): void {
    const given = Buffer.from(piece.buffer, piece.byteOffset, piece.length);
    const bytes = this.#rest.length === 0 ? given : Buffer.concat([this.#rest, given]);
    const end = this.#read(bytes);
    this.#rest = Buffer.from(bytes.subarray(end));
    this.#offset += end;
  }

  /** The value. @throws {JsonError} if it is not whole */
  end(): unknown {
    // A number ends where something else follows.
    this.push(Buffer.from(' '));
    if (this.#string !== undefined || this.#rest.length > 0) throw invalidJson();
    return this.#tree.end();
  }

  /** @returns where the bytes begin that need those after them */
  #read(bytes: Buffer): number {
    let at = this.#offset === 0 ? markBytes(bytes) : 0;
    if (at > bytes.length) return 0;
    while (at < bytes.length) {
      const next = this.#string === undefined ? this.#readToken(bytes, at) : this.#readString(bytes, at);
      if (next === undefined) return at;
      at = next;
    }
    return at;
  }

  #readToken(bytes: Buffer, at: number): number | undefined {
    const byte = bytes[at] ?? 0;
    if (isSpace(byte)) return at + 1;
    if (byte === QUOTE) {
      this.#string = { text: '', bytes: 0 };
      return at + 1;
    }
    if (isPunctuation(byte)) {
      this.#tree.punctuate(byte, this.#offset + at);
      return at + 1;
    }
    return this.#readWord(bytes, at);
  }

  /** A number or a literal: whatever stands up to the next character that can't be part of one. */
  #readWord(bytes: Buffer, at: number): number | undefined {
    let end = at;
    while (end < bytes.length && isWord(bytes[end] ?? 0)) end += 1;
    if (end - at > MAX_NUMBER_BYTES) throw new JsonLimitError(`has a number of more than ${MAX_NUMBER_BYTES} digits`);
    if (end === at) throw invalidJson(this.#offset + at);
    if (end === bytes.length) return undefined;
    const text = bytes.toString('latin1', at, end);
    const literal = end - at <= MAX_LITERAL_BYTES ? LITERALS.get(text) : undefined;
    if (literal === undefined && !NUMBER.test(text)) throw invalidJson(this.#offset + at);
    this.#tree.value(literal === undefined ? Number(text) : literal, this.#offset + at);
    return end;
  }

  /** From within a string to behind it, or as far as there are whole characters of it. */
  #readString(bytes: Buffer, start: number): number | undefined {
    let at = start;
    let seen = 0;
    let hasEscape = false;
    let byte = bytes[at] ?? QUOTE;
    while (at < bytes.length && byte !== QUOTE) {
      if (byte < 0x20) throw invalidJson(this.#offset + at);
      seen |= byte;
      if (byte === BACKSLASH) hasEscape = true;
      const next = at + (byte === BACKSLASH ? escapeBytes(bytes, at) : 1);
      if (next > bytes.length) break;
      at = next;
      byte = bytes[at] ?? QUOTE;
    }
    const isWhole = at < bytes.length && byte === QUOTE;
    const end = isWhole || byte === BACKSLASH || seen < 0x80 ? at : wholeCharacters(bytes, start, at);
    this.#addText(bytes.subarray(start, end), { isAscii: seen < 0x80, hasEscape });
    if (isWhole) this.#endString(this.#offset + end);
    if (isWhole) return end + 1;
    return end === start ? undefined : end;
  }

  #addText(bytes: Buffer, { isAscii, hasEscape }: TextKind): void {
    const string = this.#string;
    if (string === undefined || bytes.length === 0) return;
    string.bytes += bytes.length;
    if (this.#tree.wantsKey && string.bytes > this.#limits.maxKeyBytes) {
      throw new JsonLimitError(`has a key of more than ${this.#limits.maxKeyBytes} bytes`);
    }
    const text = isAscii ? bytes.toString('latin1') : decodeUtf8(bytes);
    string.text += hasEscape ? this.#unescaped(text) : text;
  }

  #unescaped(text: string): string {
    try {
      return String(JSON.parse(`"${text}"`));
    } catch {
      throw invalidJson(this.#offset);
    }
  }

  #endString(at: number): void {
    const { text } = this.#string ?? { text: '' };
    this.#string = undefined;
    this.#tree.string(text, at);
  }
}

interface TextKind {
  readonly isAscii: boolean;
  readonly hasEscape: boolean;
}

/** The value of a short JSON text that is there as a whole: what is not short is read piece by piece. @throws {JsonError} */
export function parseBoundedJson(text: string | Uint8Array): unknown {
  const reader = new JsonReader();
  reader.push(typeof text === 'string' ? Buffer.from(text) : text);
  return reader.end();
}

/** How long the mark is that some editors write before a text; of one that has only begun, too. */
function markBytes(bytes: Buffer): number {
  const beginning = bytes.subarray(0, BYTE_ORDER_MARK.length);
  const isMark = beginning.length > 0 && BYTE_ORDER_MARK.subarray(0, beginning.length).equals(beginning);
  return isMark ? BYTE_ORDER_MARK.length : 0;
}

function decodeUtf8(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new JsonError('is not valid UTF-8');
  }
}

/** Of `\n` 2, of `\u0000` 6; what they stand for, if anything, is looked at later. */
function escapeBytes(bytes: Buffer, at: number): number {
  return bytes[at + 1] === LETTER_U ? 6 : 2;
}

/** Up to the last character that is not cut in two. What is no UTF-8 stays, to be refused. */
function wholeCharacters(bytes: Buffer, start: number, end: number): number {
  for (let at = end - 1; at >= Math.max(start, end - 3); at -= 1) {
    const byte = bytes[at] ?? 0;
    if (byte < 0x80) return end;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 0;
    if (needed > 0) return at + needed > end ? at : end;
  }
  return end;
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** `, : [ ] { }` */
function isPunctuation(byte: number): boolean {
  return byte === 0x2c || byte === 0x3a || byte === 0x5b || byte === 0x5d || byte === 0x7b || byte === 0x7d;
}

/** Digits, letters, `+`, `-` and `.` */
function isWord(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) ||
    (byte >= 0x61 && byte <= 0x7a) ||
    (byte >= 0x41 && byte <= 0x5a) ||
    byte === 0x2b ||
    byte === 0x2d ||
    byte === 0x2e
  );
}
