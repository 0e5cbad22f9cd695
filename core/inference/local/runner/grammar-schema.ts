/**
 * A tool's JSON Schema into the subset that the engine's grammar generator understands (type, const, enum, oneOf, object,
 * array, local $ref; see node-llama-cpp's `GbnfJsonSchema`). Pure. A grammar steers what a model can write; it does
 * not validate: `pattern`, `minimum` and `not` have no counterpart and are dropped.
 *
 * The generator writes every property of an object, in order, and has no notion of an optional one. Two callers
 * want two different answers to that:
 *
 * - a response format promises an instance of the schema. Writing optional properties too keeps that promise;
 * - a tool call should hold only what the model means to say. There the required properties are fixed, and any
 *   others follow freely as additional ones.
 */
import type { GbnfJsonSchema } from 'node-llama-cpp';
import { ServiceError } from '../../../errors.ts';
import { isRecord } from '../../../json.ts';

export type OptionalProperties = 'written' | 'free';

/** A JSON document of any shape; the generator takes an empty type list for it. */
const ANY: GbnfJsonSchema = {
  oneOf: [{ type: ['string', 'number', 'boolean', 'null'] }, { type: 'array' }, anyObject()],
};

/** How deep a schema is followed. Deeper parts may be any JSON; it also ends a definition that contains itself. */
const MAX_DEPTH = 24;

/**
 * How many parts a schema is followed into. References are expanded where they stand, so that a few definitions that use
 * each other several times would make billions; the largest honest schemas have some hundred parts.
 */
const MAX_PARTS = 5000;

/** @param schema a JSON Schema, drafts 4 to 2020-12; anything unknown in it leaves that part unconstrained */
export function grammarSchema(schema: unknown, optional: OptionalProperties): GbnfJsonSchema {
  return convert(schema, { root: schema, optional, depth: 0, following: [], budget: { parts: MAX_PARTS } });
}

/** The engine's grammar for "a JSON object, whatever is in it". */
export function anyObject(): GbnfJsonSchema {
  return { type: 'object', additionalProperties: true };
}

interface Scope {
  readonly root: unknown;
  readonly optional: OptionalProperties;
  readonly depth: number;
  /** The `$ref`s being expanded around this point. */
  readonly following: readonly string[];
  /** What is left for the whole schema; every part takes one. */
  readonly budget: { parts: number };
}

function convert(schema: unknown, scope: Scope): GbnfJsonSchema {
  if (!isRecord(schema) || scope.depth > MAX_DEPTH || scope.budget.parts <= 0) return ANY;
  scope.budget.parts -= 1;
  const inner = { ...scope, depth: scope.depth + 1 };
  if (typeof schema['$ref'] === 'string') return followReference(schema['$ref'], inner);
  if (isScalar(schema['const'])) return { const: writable(schema['const']) };
  if (Array.isArray(schema['enum'])) return convertEnum(schema['enum']);
  const alternatives = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(alternatives)) {
    const choices = oneAtLeast(alternatives).map((one) => convert(one, inner));
    return choices.length > MAX_CHOICES ? ANY : { oneOf: choices };
  }
  if (Array.isArray(schema['allOf'])) return convert(mergeAll(schema, schema['allOf'], scope.root), inner);
  return convertTyped(schema, inner);
}

/** The engine looks at each of them at every token: some hundreds cost it milliseconds, some thousands seconds. */
const MAX_CHOICES = 250;

/** Objects and lists among the values can't be said. */
function convertEnum(values: readonly unknown[]): GbnfJsonSchema {
  const scalars = oneAtLeast(values).filter(isScalar);
  return scalars.length === 0 || scalars.length > MAX_CHOICES ? ANY : { enum: scalars.map(writable) };
}

/** @throws {ServiceError} `invalid_request`: no value fits a choice of none */
function oneAtLeast<Value>(choices: readonly Value[]): readonly Value[] {
  if (choices.length > 0) return choices;
  throw new ServiceError('invalid_request', "A tool's parameters have an empty list of choices, which no value fits.");
}

/** Control characters; the engine writes them into its grammar as they are, and can't read it then. */
// oxlint-disable-next-line no-control-regex
const UNWRITABLE = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|[\ud800-\udfff]/u;

/** @throws {ServiceError} `unsupported` for text that the engine's grammars can't hold */
function writable<Value extends string | number | boolean | null>(value: Value): Value {
  if (typeof value !== 'string' || !UNWRITABLE.test(value)) return value;
  throw new ServiceError(
    'unsupported',
    "A tool's parameters name a property or a value with control characters in it, which this model can't be held to.",
  );
}

function convertTyped(schema: Record<string, unknown>, scope: Scope): GbnfJsonSchema {
  const types = typesOf(schema);
  const [type]: readonly unknown[] = types;
  if (type === undefined) return ANY;
  if (types.length > 1)
    return { oneOf: types.map((one) => convertTyped({ ...schema, nullable: false, type: one }, scope)) };
  switch (type) {
    case 'object':
      return convertObject(schema, scope);
    case 'array':
      return convertArray(schema, scope);
    case 'string':
      return convertString(schema);
    case 'number':
      return { type: 'number' };
    case 'integer':
      return { type: 'integer' };
    case 'boolean':
      return { type: 'boolean' };
    case 'null':
      return { type: 'null' };
    default:
      return ANY;
  }
}

function typesOf(schema: Record<string, unknown>): readonly unknown[] {
  const declared = schema['type'];
  const types = Array.isArray(declared) ? declared : declared === undefined ? impliedTypes(schema) : [declared];
  return schema['nullable'] === true && !types.includes('null') ? [...types, 'null'] : types;
}

function impliedTypes(schema: Record<string, unknown>): readonly string[] {
  if (isRecord(schema['properties']) || schema['additionalProperties'] !== undefined) return ['object'];
  return schema['items'] !== undefined || schema['prefixItems'] !== undefined ? ['array'] : [];
}

function convertObject(schema: Record<string, unknown>, scope: Scope): GbnfJsonSchema {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {};
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  const written = Object.entries(properties).filter(
    // An optional property that leads back into a definition around it would have to be written for ever.
    ([name, value]) => required.has(name) || (scope.optional === 'written' && !leadsBack(value, scope)),
  );
  const isClosed = schema['additionalProperties'] === false;
  const hasOthers = written.length < Object.keys(properties).length;
  const isOpen = scope.optional === 'free' ? hasOthers || !isClosed : Object.keys(properties).length === 0 && !isClosed;
  const extra = isRecord(schema['additionalProperties']) ? convert(schema['additionalProperties'], scope) : true;
  return {
    type: 'object',
    properties: Object.fromEntries(written.map(([name, value]) => [writable(name), convert(value, scope)])),
    ...(isOpen ? { additionalProperties: hasOthers ? true : extra } : {}),
  };
}

function convertArray(schema: Record<string, unknown>, scope: Scope): GbnfJsonSchema {
  const prefix = schema['prefixItems'];
  return {
    type: 'array',
    ...(Array.isArray(prefix) ? { prefixItems: prefix.map((item) => convert(item, scope)) } : {}),
    ...(isRecord(schema['items']) ? { items: convert(schema['items'], scope) } : {}),
    ...count('minItems', schema),
    ...count('maxItems', schema),
  };
}

function convertString(schema: Record<string, unknown>): GbnfJsonSchema {
  const format = schema['format'];
  if (format === 'date-time' || format === 'date' || format === 'time') return { type: 'string', format };
  return { type: 'string', ...count('minLength', schema), ...count('maxLength', schema) };
}

/** llama.cpp refuses grammars that repeat a rule more than 2,000 times; half of that leaves room for nesting. */
const MAX_COUNT = 1000;

/** A bound on a length, where the grammar can hold it; a larger one is left out. */
function count<Name extends string>(name: Name, schema: Record<string, unknown>): { [key in Name]?: number } {
  const value = schema[name];
  const out: { [key in Name]?: number } = {};
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MAX_COUNT) out[name] = value;
  return out;
}

/** Expands in place: the generator's own `$defs` would need a second naming scheme for `definitions` and paths. */
function followReference(reference: string, scope: Scope): GbnfJsonSchema {
  if (scope.following.includes(reference)) return ANY;
  return convert(lookUp(reference, scope.root), { ...scope, following: [...scope.following, reference] });
}

function leadsBack(schema: unknown, scope: Scope): boolean {
  if (!isRecord(schema)) return false;
  if (typeof schema['$ref'] === 'string' && scope.following.includes(schema['$ref'])) return true;
  const alternatives = schema['anyOf'] ?? schema['oneOf'];
  return Array.isArray(alternatives) && alternatives.some((one) => leadsBack(one, scope));
}

/** RFC 6901 pointers into the same document (`#/$defs/name`); other references are unknown here. */
function lookUp(reference: string, root: unknown): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined;
  return reference
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((at, part) => (isRecord(at) && Object.hasOwn(at, part) ? at[part] : undefined), root);
}

/** `allOf` of objects, which is what generators of schemas use it for: the properties of all of them together. */
function mergeAll(schema: Record<string, unknown>, parts: readonly unknown[], root: unknown): Record<string, unknown> {
  const { allOf: _, ...own } = schema;
  const all = [
    own,
    ...parts.map((part) => (isRecord(part) && typeof part['$ref'] === 'string' ? lookUp(part['$ref'], root) : part)),
  ];
  const records = all.filter(isRecord);
  return {
    ...Object.assign({}, ...records),
    properties: Object.assign({}, ...records.map((part) => part['properties'])),
    required: records.flatMap((part) => (Array.isArray(part['required']) ? part['required'] : [])),
  };
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}
