/**
 * What a list of schemas that hold all at once says in its own keywords, put together: one range, one list of properties.
 * Keywords that leave a choice (`anyOf`, `if`) are elsewhere. Pure.
 */
import { isRecord } from '../json.ts';
import { jsonEqual } from './json-equal.ts';
import { asSchema, type Schema } from './references.ts';

export type JsonType = 'null' | 'boolean' | 'object' | 'array' | 'number' | 'string';
export const JSON_TYPES: readonly JsonType[] = ['object', 'array', 'string', 'number', 'boolean', 'null'];

/** Schemas that hold all at once. */
export type All = readonly Schema[];

export interface Keywords {
  /** Absent where nothing says it. */
  types: ReadonlySet<JsonType> | undefined;
  isInteger: boolean;
  /** `enum` and `const`. */
  values: readonly unknown[] | undefined;
  /** `not` of `enum` and `const`. */
  excluded: readonly unknown[];
  minimum: number;
  maximum: number;
  exclusiveMinimum: number;
  exclusiveMaximum: number;
  multipleOf: readonly number[];
  minLength: number;
  maxLength: number;
  patterns: readonly string[];
  formats: readonly string[];
  properties: ReadonlyMap<string, All>;
  patternProperties: readonly (readonly [string, All])[];
  /** Undefined where nothing is said of others. */
  additional: All | undefined;
  propertyNames: All;
  required: ReadonlySet<string>;
  minProperties: number;
  maxProperties: number;
  prefixItems: readonly All[];
  items: All | undefined;
  contains: All;
  minContains: number;
  minItems: number;
  maxItems: number;
  uniqueItems: boolean;
}

export function emptyKeywords(): Keywords {
  return {
    types: undefined,
    isInteger: false,
    values: undefined,
    excluded: [],
    minimum: -Infinity,
    maximum: Infinity,
    exclusiveMinimum: -Infinity,
    exclusiveMaximum: Infinity,
    multipleOf: [],
    minLength: 0,
    maxLength: Infinity,
    patterns: [],
    formats: [],
    properties: new Map(),
    patternProperties: [],
    additional: undefined,
    propertyNames: [],
    required: new Set(),
    minProperties: 0,
    maxProperties: Infinity,
    prefixItems: [],
    items: undefined,
    contains: [],
    minContains: 0,
    minItems: 0,
    maxItems: Infinity,
    uniqueItems: false,
  };
}

/** Says whether a name fits a property's pattern; undefined where the pattern can't be read. */
export type FitsPattern = (pattern: string, name: string) => boolean | undefined;

/** @returns both together */
export function mergeKeywords(one: Keywords, other: Keywords, fits: FitsPattern): Keywords {
  const { prefixItems, items } = mergedItems(one, other);
  return {
    types: mergedTypes(one.types, other.types),
    isInteger: one.isInteger || other.isInteger,
    values: mergedValues(one.values, other.values),
    excluded: [...one.excluded, ...other.excluded],
    minimum: Math.max(one.minimum, other.minimum),
    maximum: Math.min(one.maximum, other.maximum),
    exclusiveMinimum: Math.max(one.exclusiveMinimum, other.exclusiveMinimum),
    exclusiveMaximum: Math.min(one.exclusiveMaximum, other.exclusiveMaximum),
    multipleOf: [...one.multipleOf, ...other.multipleOf],
    minLength: Math.max(one.minLength, other.minLength),
    maxLength: Math.min(one.maxLength, other.maxLength),
    patterns: [...new Set([...one.patterns, ...other.patterns])],
    formats: [...new Set([...one.formats, ...other.formats])],
    properties: mergedProperties(one, other, fits),
    patternProperties: [...patternedIn(one, other), ...patternedIn(other, one)],
    additional: mergedIfAny(one.additional, other.additional),
    propertyNames: [...one.propertyNames, ...other.propertyNames],
    required: new Set([...one.required, ...other.required]),
    minProperties: Math.max(one.minProperties, other.minProperties),
    maxProperties: Math.min(one.maxProperties, other.maxProperties),
    prefixItems,
    items,
    contains: [...one.contains, ...other.contains],
    minContains: Math.max(one.minContains, other.minContains),
    minItems: Math.max(one.minItems, other.minItems),
    maxItems: Math.min(one.maxItems, other.maxItems),
    uniqueItems: one.uniqueItems || other.uniqueItems,
  };
}

function mergedTypes(one: Keywords['types'], other: Keywords['types']): Keywords['types'] {
  if (one === undefined || other === undefined) return one ?? other;
  return new Set([...one].filter((type) => other.has(type)));
}

/** The names that one side knows by a pattern may be additional ones to the other. */
function patternedIn(one: Keywords, { additional = [], patternProperties }: Keywords): Keywords['patternProperties'] {
  return one.patternProperties.map(([pattern, all]) =>
    patternProperties.some(([other]) => other === pattern) ? [pattern, all] : [pattern, [...all, ...additional]],
  );
}

function mergedValues(
  one: readonly unknown[] | undefined,
  other: readonly unknown[] | undefined,
): readonly unknown[] | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  const scalars = new Set(other);
  const others = other.filter((value) => typeof value === 'object');
  return one.filter((value) => scalars.has(value) || others.some((candidate) => jsonEqual(value, candidate)));
}

function mergedIfAny(one: All | undefined, other: All | undefined): All | undefined {
  return one === undefined || other === undefined ? (one ?? other) : [...one, ...other];
}

/** What one says of a property that only the other names: by a pattern, or as an additional one. */
function mergedProperties(one: Keywords, other: Keywords, fits: FitsPattern): ReadonlyMap<string, All> {
  const names = new Set([...one.properties.keys(), ...other.properties.keys()]);
  const says = (keywords: Keywords, name: string): All => {
    const named = keywords.properties.get(name);
    if (named !== undefined) return named;
    const isPatterned = keywords.patternProperties.some(([pattern]) => fits(pattern, name) !== false);
    return isPatterned ? [] : (keywords.additional ?? []);
  };
  return new Map([...names].map((name) => [name, [...says(one, name), ...says(other, name)]]));
}

function mergedItems(one: Keywords, other: Keywords): Pick<Keywords, 'prefixItems' | 'items'> {
  const most = Math.max(one.prefixItems.length, other.prefixItems.length);
  const at = (keywords: Keywords, index: number): All => keywords.prefixItems[index] ?? keywords.items ?? [];
  return {
    prefixItems: Array.from({ length: most }, (_, index) => [...at(one, index), ...at(other, index)]),
    items: mergedIfAny(one.items, other.items),
  };
}

const isCount = (value: unknown): boolean => count(value) !== undefined;
const isText = (value: unknown): boolean => typeof value === 'string' && value.isWellFormed();
const isBound = (value: unknown): boolean => typeof value === 'boolean' || number(value) !== undefined;

/** What the values of keywords have to be. */
const WELL_FORMED: Readonly<Record<string, (value: unknown) => boolean>> = {
  minLength: isCount,
  maxLength: isCount,
  minItems: isCount,
  maxItems: isCount,
  minContains: isCount,
  maxContains: isCount,
  minProperties: isCount,
  maxProperties: isCount,
  minimum: (value) => number(value) !== undefined,
  maximum: (value) => number(value) !== undefined,
  exclusiveMinimum: isBound,
  exclusiveMaximum: isBound,
  multipleOf: (value) => (number(value) ?? 0) > 0,
  pattern: isText,
  format: isText,
  enum: Array.isArray,
  required: (value) => typeof value === 'boolean' || (Array.isArray(value) && value.every(isText)),
};

/** Those keywords of one schema that say nothing, since they are malformed. */
export function malformedKeywords(schema: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.keys(WELL_FORMED).filter((name) => name in schema && WELL_FORMED[name]?.(schema[name]) === false);
}

/** The keywords of one schema. What is malformed says nothing; see `malformedKeywords`. */
export function readKeywords(schema: Readonly<Record<string, unknown>>): Keywords {
  const { types, isInteger } = readTypes(schema);
  return {
    ...emptyKeywords(),
    types,
    isInteger,
    values: readValues(schema),
    ...readNumbers(schema),
    minLength: count(schema['minLength']) ?? 0,
    maxLength: count(schema['maxLength']) ?? Infinity,
    patterns: texts([schema['pattern']]),
    formats: texts([schema['format']]),
    ...readObject(schema),
    ...readArray(schema),
  };
}

function readTypes(schema: Readonly<Record<string, unknown>>): Pick<Keywords, 'types' | 'isInteger'> {
  const declared = schema['type'];
  if (declared === undefined) return { types: undefined, isInteger: false };
  const names = texts(Array.isArray(declared) ? declared : [declared]);
  // OpenAPI 3.0.
  const all = new Set(schema['nullable'] === true ? [...names, 'null'] : names);
  const isInteger = all.has('integer') && !all.has('number');
  return { types: new Set(JSON_TYPES.filter((type) => all.has(type) || (type === 'number' && isInteger))), isInteger };
}

function readValues(schema: Readonly<Record<string, unknown>>): readonly unknown[] | undefined {
  const listed = Array.isArray(schema['enum']) ? schema['enum'] : undefined;
  return mergedValues(listed, 'const' in schema ? [schema['const']] : undefined);
}

function readNumbers(
  schema: Readonly<Record<string, unknown>>,
): Pick<Keywords, 'minimum' | 'maximum' | 'exclusiveMinimum' | 'exclusiveMaximum' | 'multipleOf'> {
  const minimum = number(schema['minimum']) ?? -Infinity;
  const maximum = number(schema['maximum']) ?? Infinity;
  // Draft 4 says only whether the bound itself is excluded.
  return {
    minimum,
    maximum,
    exclusiveMinimum: schema['exclusiveMinimum'] === true ? minimum : (number(schema['exclusiveMinimum']) ?? -Infinity),
    exclusiveMaximum: schema['exclusiveMaximum'] === true ? maximum : (number(schema['exclusiveMaximum']) ?? Infinity),
    multipleOf: [number(schema['multipleOf'])].filter((value) => value !== undefined && value > 0).map(Number),
  };
}

function readObject(schema: Readonly<Record<string, unknown>>): Partial<Keywords> {
  const names = asSchema(schema['propertyNames']);
  const additional = asSchema(schema['additionalProperties']);
  return {
    properties: new Map(schemasIn(schema['properties'])),
    patternProperties: schemasIn(schema['patternProperties']),
    additional: additional === undefined ? undefined : [additional],
    propertyNames: names === undefined ? [] : [names],
    required: new Set(texts(Array.isArray(schema['required']) ? schema['required'] : [])),
    minProperties: count(schema['minProperties']) ?? 0,
    maxProperties: count(schema['maxProperties']) ?? Infinity,
  };
}

function readArray(schema: Readonly<Record<string, unknown>>): Partial<Keywords> {
  // Before 2020-12, `items` could be the list, and `additionalItems` what follows it.
  const isList = Array.isArray(schema['items']);
  const prefix = isList ? schema['items'] : schema['prefixItems'];
  const items = asSchema(isList ? schema['additionalItems'] : schema['items']);
  const contains = asSchema(schema['contains']);
  return {
    prefixItems: Array.isArray(prefix) ? prefix.map((item) => [asSchema(item) ?? true]) : [],
    items: items === undefined ? undefined : [items],
    contains: contains === undefined ? [] : [contains],
    minContains: contains === undefined ? 0 : (count(schema['minContains']) ?? 1),
    minItems: count(schema['minItems']) ?? 0,
    maxItems: count(schema['maxItems']) ?? Infinity,
    uniqueItems: schema['uniqueItems'] === true,
  };
}

function schemasIn(value: unknown): (readonly [string, All])[] {
  if (!isRecord(value)) return [];
  return Object.entries(value).map(([name, inner]) => [name, [asSchema(inner) ?? true]]);
}

function number(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 ? value : undefined;
}

function texts(values: readonly unknown[]): string[] {
  return values.filter((value) => typeof value === 'string');
}
