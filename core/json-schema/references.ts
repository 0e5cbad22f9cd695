/** Where the parts of a schema stand, and what its references mean. Only references within the schema are followed. Pure. */
import { isRecord } from '../json.ts';

/** `true` and `false` are schemas, too. */
export type Schema = boolean | Readonly<Record<string, unknown>>;

/** @returns undefined for what is no schema */
export function asSchema(value: unknown): Schema | undefined {
  return typeof value === 'boolean' || isRecord(value) ? value : undefined;
}

export interface References {
  /** @returns undefined for a reference that leads out of the schema, or to nothing */
  readonly resolve: (reference: string) => Schema | undefined;
  /** Where a part stands, as `properties.tags.items`; '' for the root, and for what stands nowhere. */
  readonly pathOf: (part: object) => string;
}

export function createReferences(root: Schema): References {
  const anchors = new Map<string, Schema>();
  const places = new Map<object, Place>();
  let hasOtherBases = false;
  for (const part of partsOf(root, places)) {
    if (part !== root && (typeof part['$id'] === 'string' || typeof part['id'] === 'string')) hasOtherBases = true;
    if (typeof part['$anchor'] === 'string') anchors.set(part['$anchor'], part);
  }
  return {
    resolve(reference) {
      // A part with an address of its own changes what references mean, and who knows for which of them.
      if (hasOtherBases || !reference.startsWith('#')) return undefined;
      const fragment = decoded(reference.slice(1));
      if (fragment === undefined) return undefined;
      return fragment === '' || fragment.startsWith('/') ? lookUp(root, fragment) : anchors.get(fragment);
    },
    pathOf(part) {
      const names: string[] = [];
      for (let at = places.get(part); at !== undefined; at = places.get(at.parent)) names.unshift(at.name);
      return names.join('.');
    },
  };
}

interface Place {
  readonly parent: object;
  readonly name: string;
}

function decoded(fragment: string): string | undefined {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return undefined;
  }
}

/** RFC 6901. */
function lookUp(root: unknown, pointer: string): Schema | undefined {
  let at = root;
  for (const part of pointer.split('/').slice(1)) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = Object.entries(at).find(([name]) => name === key)?.[1];
  }
  return asSchema(at);
}

/** Every object in it, schema or not. What is only said in `enum`, `const` and examples is no part of it. */
function* partsOf(root: unknown, places: Map<object, Place>): Generator<Readonly<Record<string, unknown>>> {
  const waiting = [root];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== 'object' || next === null) continue;
    if (isRecord(next)) yield next;
    for (const [name, inner] of Object.entries(next)) {
      if (typeof inner !== 'object' || inner === null || DATA.has(name)) continue;
      places.set(inner, { parent: next, name });
      waiting.push(inner);
    }
  }
}

const DATA: ReadonlySet<string> = new Set(['enum', 'const', 'default', 'examples', 'example']);
