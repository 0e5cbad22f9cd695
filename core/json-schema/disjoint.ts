/** Whether nothing that is written by one schema fits another; where it can't be told, it is said to fit. Pure. */
import { jsonEqual } from './json-equal.ts';
import { JSON_TYPES, type All, type JsonType, type Keywords } from './keywords.ts';

/** What is written, as opposed to what would be allowed: no properties beside those that are named. */
export interface Written extends Keywords {
  /** False where something beside these keywords may add properties. */
  readonly isWhole: boolean;
}

type Expand = (all: All) => readonly Keywords[];

/** Properties within properties that are looked into. */
const MAX_DEPTH = 3;

export function isDisjoint(written: Written, under: Keywords, expand: Expand, depth = 0): boolean {
  if (written.values !== undefined && under.values !== undefined) {
    return !written.values.some((value) => under.values?.some((other) => jsonEqual(value, other)));
  }
  return JSON_TYPES.every((type) => {
    if (!typesOf(written).has(type) || under.types?.has(type) === false) return true;
    if (under.values?.every((value) => typeOfValue(value) !== type) === true) return true;
    if (type === 'number') return isNumberApart(written, under);
    if (type === 'string') return written.minLength > under.maxLength || written.maxLength < under.minLength;
    return type === 'object' && depth < MAX_DEPTH && isObjectApart(written, under, { expand, depth });
  });
}

function isNumberApart(one: Keywords, other: Keywords): boolean {
  const below = (low: Keywords, high: Keywords): boolean =>
    Math.min(low.maximum, low.exclusiveMaximum) < Math.max(high.minimum, high.exclusiveMinimum) ||
    (low.exclusiveMaximum <= high.minimum && low.exclusiveMaximum < Infinity) ||
    (low.maximum <= high.exclusiveMinimum && low.maximum < Infinity);
  return below(one, other) || below(other, one);
}

function isObjectApart(
  written: Written,
  under: Keywords,
  { expand, depth }: { readonly expand: Expand; readonly depth: number },
): boolean {
  const isOpen = !written.isWhole || isOpenObject(written);
  const lacks = [...under.required].some(
    (name) => !isOpen && !written.properties.has(name) && !written.required.has(name),
  );
  if (lacks) return true;
  return [...written.required].some((name) => {
    const theirs = under.properties.get(name);
    if (theirs === undefined) return isForbidden(under, name);
    return expand(written.properties.get(name) ?? []).every((one) =>
      expand(theirs).every((other) => isDisjoint({ ...one, isWhole: true }, other, expand, depth + 1)),
    );
  });
}

function isForbidden({ additional, patternProperties }: Keywords, name: string): boolean {
  return name !== '' && patternProperties.length === 0 && additional?.includes(false) === true;
}

/** Whether properties that nothing names may be written. */
export function isOpenObject({ properties, patternProperties, additional, required }: Keywords): boolean {
  if (additional !== undefined) return !additional.includes(false);
  return patternProperties.length > 0 || properties.size + required.size === 0;
}

/** What may be written: where no type is said, those that something is said of; else any. */
export function typesOf(keywords: Keywords): ReadonlySet<JsonType> {
  if (keywords.types !== undefined) return keywords.types;
  if (keywords.values !== undefined) return new Set(keywords.values.map(typeOfValue));
  const implied = JSON_TYPES.filter((type) => IMPLIES[type](keywords));
  return new Set(implied.length === 0 ? JSON_TYPES : implied);
}

const IMPLIES: Readonly<Record<JsonType, (keywords: Keywords) => boolean>> = {
  object: (all) =>
    all.properties.size + all.required.size + all.patternProperties.length + all.propertyNames.length > 0 ||
    all.additional !== undefined ||
    all.minProperties > 0 ||
    all.maxProperties < Infinity,
  array: (all) =>
    all.prefixItems.length + all.contains.length > 0 ||
    all.items !== undefined ||
    all.minItems > 0 ||
    all.maxItems < Infinity ||
    all.uniqueItems,
  string: (all) => all.patterns.length + all.formats.length > 0 || all.minLength > 0 || all.maxLength < Infinity,
  number: (all) =>
    all.multipleOf.length > 0 ||
    Math.max(all.minimum, all.exclusiveMinimum) > -Infinity ||
    Math.min(all.maximum, all.exclusiveMaximum) < Infinity,
  boolean: () => false,
  null: () => false,
};

export function typeOfValue(value: unknown): JsonType {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean' || typeof value === 'number' || typeof value === 'string') {
    return typeof value === 'boolean' ? 'boolean' : typeof value === 'number' ? 'number' : 'string';
  }
  return 'object';
}
