/**
 * What holds where a schema doesn't, as schemas of which one holds; as far as that can be said. It is what `not`, the
 * `else` of a condition, and a `oneOf` whose alternatives overlap come down to. Pure.
 */
import { isRecord } from '../json.ts';
import { asSchema, type References, type Schema } from './references.ts';

/** Our own keyword: none of these values. */
export const NONE_OF = ' none of';

const TYPES = ['null', 'boolean', 'object', 'array', 'number', 'string'];

/** Keywords that say nothing of what is allowed. */
export const ANNOTATIONS: ReadonlySet<string> = new Set(
  [
    '$schema $id id $anchor $comment $defs definitions $vocabulary title description default examples example',
    'deprecated readOnly writeOnly contentEncoding contentMediaType contentSchema',
    'xml externalDocs discriminator markdownDescription enumNames enumDescriptions propertyOrdering strict',
  ].flatMap((names) => names.split(' ')),
);

/** References within references; beyond it, or round in circles, nothing can be said. */
const MAX_DEPTH = 20;

/** @returns undefined where it can't be said */
export function negations(schema: Schema, references: References, depth = 0): readonly Schema[] | undefined {
  if (typeof schema === 'boolean') return schema ? [] : [true];
  if (depth > MAX_DEPTH) return undefined;
  const all: Schema[] = [];
  for (const [keyword, value] of Object.entries(schema)) {
    if (ANNOTATIONS.has(keyword)) continue;
    const said = negated(keyword, value, { references, depth: depth + 1 });
    if (said === undefined) return undefined;
    all.push(...said);
  }
  return all;
}

interface Scope {
  readonly references: References;
  readonly depth: number;
}

function negated(keyword: string, value: unknown, scope: Scope): readonly Schema[] | undefined {
  const inner = asSchema(value);
  switch (keyword) {
    case '$ref': {
      const target = typeof value === 'string' ? scope.references.resolve(value) : undefined;
      return target === undefined ? undefined : negations(target, scope.references, scope.depth);
    }
    case 'not':
      return inner === undefined ? undefined : [inner];
    case 'allOf':
      return negatedEach(value, scope);
    case 'type':
      return negatedType(value);
    case 'const':
      return [{ [NONE_OF]: [value] }];
    case 'enum':
      return Array.isArray(value) ? [{ [NONE_OF]: value }] : undefined;
    case 'required':
      return Array.isArray(value)
        ? value.filter((name) => typeof name === 'string').map((name) => forbidding(name))
        : undefined;
    case 'properties':
      return negatedProperties(value, scope);
    default:
      return negatedBound(keyword, value);
  }
}

function forbidding(name: string): Schema {
  return { type: 'object', properties: { [name]: false } };
}

function negatedEach(value: unknown, { references, depth }: Scope): readonly Schema[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const each = value.map((one) => negations(asSchema(one) ?? true, references, depth));
  return each.every((one) => one !== undefined) ? each.flat() : undefined;
}

function negatedType(value: unknown): readonly Schema[] | undefined {
  const named: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (named.includes('integer')) return undefined;
  return [{ type: TYPES.filter((type) => !named.includes(type)) }];
}

function negatedProperties(value: unknown, { references, depth }: Scope): readonly Schema[] | undefined {
  if (!isRecord(value)) return undefined;
  const all: Schema[] = [];
  for (const [name, inner] of Object.entries(value)) {
    const said = negations(asSchema(inner) ?? true, references, depth);
    if (said === undefined) return undefined;
    all.push(...said.map((other) => ({ type: 'object', properties: { [name]: other }, required: [name] })));
  }
  return all;
}

function negatedBound(keyword: string, value: unknown): readonly Schema[] | undefined {
  if (typeof value !== 'number') return undefined;
  switch (keyword) {
    case 'minimum':
      return [{ type: 'number', exclusiveMaximum: value }];
    case 'maximum':
      return [{ type: 'number', exclusiveMinimum: value }];
    case 'exclusiveMinimum':
      return [{ type: 'number', maximum: value }];
    case 'exclusiveMaximum':
      return [{ type: 'number', minimum: value }];
    case 'minLength':
      return value > 0 ? [{ type: 'string', maxLength: value - 1 }] : [];
    case 'maxLength':
      return [{ type: 'string', minLength: value + 1 }];
    case 'minItems':
      return value > 0 ? [{ type: 'array', maxItems: value - 1 }] : [];
    case 'maxItems':
      return [{ type: 'array', minItems: value + 1 }];
    default:
      return undefined;
  }
}
