/** The values of a JSON text as its tokens come, in the order that the grammar allows, within limits. */
import { invalidJson, JsonLimitError } from './json-error.ts';
import type { JsonLimits } from './json-limits.ts';

interface OpenArray {
  readonly kind: 'array';
  readonly value: unknown[];
  /** Items that are no numbers. */
  objects: number;
}

interface OpenObject {
  readonly kind: 'object';
  readonly value: Record<string, unknown>;
  members: number;
  /** Of the member whose value comes next. */
  key: string;
}

/** What may come next; `…OrEnd` only right behind an opening bracket. */
type Expected = 'value' | 'valueOrEnd' | 'key' | 'keyOrEnd' | 'colon' | 'commaOrEnd' | 'nothing';

export class JsonTree {
  readonly #limits: JsonLimits;
  readonly #open: (OpenArray | OpenObject)[] = [];
  #expected: Expected = 'value';
  #nodes = 0;
  #root: unknown;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
  }

  /** Values and keys so far. */
  get nodes(): number {
    return this.#nodes;
  }

  /** Whether a string would be a key. */
  get wantsKey(): boolean {
    return this.#expected === 'key' || this.#expected === 'keyOrEnd';
  }

  /** @throws {JsonError} if it is not whole */
  end(): unknown {
    if (this.#expected !== 'nothing') throw invalidJson();
    return this.#root;
  }

  /** @param byte one of `, : [ ] { }` */
  punctuate(byte: number, offset: number): void {
    switch (byte) {
      case 0x5b:
        return this.#begin({ kind: 'array', value: [], objects: 0 }, offset);
      case 0x7b:
        return this.#begin({ kind: 'object', value: {}, members: 0, key: '' }, offset);
      case 0x5d:
        return this.#close('array', 'valueOrEnd', offset);
      case 0x7d:
        return this.#close('object', 'keyOrEnd', offset);
      case 0x3a:
        return this.#step('colon', 'value', offset);
      default:
        return this.#step('commaOrEnd', this.#open.at(-1)?.kind === 'object' ? 'key' : 'value', offset);
    }
  }

  string(text: string, offset: number): void {
    if (this.wantsKey) this.#key(text);
    else this.value(text, offset);
  }

  /** A value that is whole. */
  value(value: unknown, offset: number): void {
    this.#wantValue(offset);
    this.#add(value);
    this.#expected = this.#open.length === 0 ? 'nothing' : 'commaOrEnd';
  }

  #key(text: string): void {
    const open = this.#open.at(-1);
    if (open?.kind !== 'object') throw new TypeError('a key outside of an object');
    this.#count();
    open.members += 1;
    const { maxMembers } = this.#limits;
    if (open.members > maxMembers) throw new JsonLimitError(`has an object with more than ${maxMembers} members`);
    open.key = text;
    this.#expected = 'colon';
  }

  #begin(container: OpenArray | OpenObject, offset: number): void {
    this.#wantValue(offset);
    const { maxDepth } = this.#limits;
    if (this.#open.length >= maxDepth) throw new JsonLimitError(`is nested more than ${maxDepth} levels deep`);
    this.#add(container.value);
    this.#open.push(container);
    this.#expected = container.kind === 'array' ? 'valueOrEnd' : 'keyOrEnd';
  }

  #close(kind: 'array' | 'object', ifEmpty: Expected, offset: number): void {
    const mayEnd = this.#expected === ifEmpty || this.#expected === 'commaOrEnd';
    if (!mayEnd || this.#open.pop()?.kind !== kind) throw invalidJson(offset);
    this.#expected = this.#open.length === 0 ? 'nothing' : 'commaOrEnd';
  }

  #step(expected: Expected, next: Expected, offset: number): void {
    if (this.#expected !== expected || this.#open.length === 0) throw invalidJson(offset);
    this.#expected = next;
  }

  #wantValue(offset: number): void {
    if (this.#expected !== 'value' && this.#expected !== 'valueOrEnd') throw invalidJson(offset);
  }

  #add(value: unknown): void {
    this.#count();
    const open = this.#open.at(-1);
    if (open === undefined) this.#root = value;
    else if (open.kind === 'array') this.#addItem(open, value);
    else addMember(open, value);
  }

  #addItem(open: OpenArray, value: unknown): void {
    const { maxItems, maxObjects } = this.#limits;
    if (typeof value !== 'number') open.objects += 1;
    if (open.objects > maxObjects) throw new JsonLimitError(`has an array with more than ${maxObjects} items`);
    if (open.value.length >= maxItems) throw new JsonLimitError(`has an array with more than ${maxItems} numbers`);
    open.value.push(value);
  }

  #count(): void {
    this.#nodes += 1;
    const { maxNodes } = this.#limits;
    if (this.#nodes > maxNodes) throw new JsonLimitError(`has more than ${maxNodes} values and keys`);
  }
}

function addMember({ value: object, key }: OpenObject, value: unknown): void {
  // Assigned, this one would change what the object is rather than what it holds.
  if (key !== '__proto__') object[key] = value;
  else Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
}
