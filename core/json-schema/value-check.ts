/** Which of the values that a schema lists its other keywords allow. Pure; patterns are read in linear time. */
import { isRecord } from '../json.ts';
import { jsonEqual } from './json-equal.ts';
import { typeOfValue } from './disjoint.ts';
import type { All, FitsPattern, Keywords } from './keywords.ts';

export interface ValueCheck {
  readonly expand: (all: All) => readonly Keywords[];
  readonly fitsPattern: FitsPattern;
  readonly fitsFormat: FitsPattern;
}

export function fitsAll(value: unknown, all: All, check: ValueCheck): boolean {
  return check.expand(all).some((keywords) => fits(value, keywords, check));
}

/** @returns true, too, where a pattern or a format can't be read: that is named elsewhere */
export function fits(value: unknown, keywords: Keywords, check: ValueCheck): boolean {
  if (keywords.types?.has(typeOfValue(value)) === false) return false;
  if (keywords.values?.some((one) => jsonEqual(one, value)) === false) return false;
  if (keywords.excluded.some((one) => jsonEqual(one, value))) return false;
  if (typeof value === 'number') return fitsNumber(value, keywords);
  if (typeof value === 'string') return fitsString(value, keywords, check);
  if (Array.isArray(value)) return fitsArray(value, keywords, check);
  return !isRecord(value) || fitsObject(value, keywords, check);
}

function fitsNumber(value: number, keywords: Keywords): boolean {
  return (
    (!keywords.isInteger || Number.isInteger(value)) &&
    value >= keywords.minimum &&
    value <= keywords.maximum &&
    value > keywords.exclusiveMinimum &&
    value < keywords.exclusiveMaximum &&
    keywords.multipleOf.every((divisor) => value % divisor === 0)
  );
}

function fitsString(value: string, keywords: Keywords, { fitsPattern, fitsFormat }: ValueCheck): boolean {
  const { length } = Array.from(value);
  return (
    length >= keywords.minLength &&
    length <= keywords.maxLength &&
    keywords.patterns.every((pattern) => fitsPattern(pattern, value) !== false) &&
    keywords.formats.every((format) => fitsFormat(format, value) !== false)
  );
}

function fitsArray(value: readonly unknown[], keywords: Keywords, check: ValueCheck): boolean {
  const containing = value.filter((item) => fitsAll(item, keywords.contains, check)).length;
  return (
    value.length >= keywords.minItems &&
    value.length <= keywords.maxItems &&
    (keywords.contains.length === 0 || containing >= keywords.minContains) &&
    value.every((item, index) => fitsAll(item, keywords.prefixItems[index] ?? keywords.items ?? [], check)) &&
    (!keywords.uniqueItems ||
      value.every((item, index) => !value.slice(0, index).some((other) => jsonEqual(item, other))))
  );
}

function fitsObject(value: Readonly<Record<string, unknown>>, keywords: Keywords, check: ValueCheck): boolean {
  const names = Object.keys(value);
  return (
    [...keywords.required].every((name) => Object.hasOwn(value, name)) &&
    names.length >= keywords.minProperties &&
    names.length <= keywords.maxProperties &&
    names.every(
      (name) =>
        fitsAll(name, keywords.propertyNames, check) &&
        fitsAll(value[name], schemasOfProperty(name, keywords, check), check),
    )
  );
}

/** Everything that is said of the property with this name. */
export function schemasOfProperty(
  name: string,
  keywords: Keywords,
  { fitsPattern }: Pick<ValueCheck, 'fitsPattern'>,
): All {
  const named = keywords.properties.get(name);
  const patterned = keywords.patternProperties.filter(([pattern]) => fitsPattern(pattern, name) === true);
  const others = named === undefined && patterned.length === 0 ? (keywords.additional ?? []) : [];
  return [...(named ?? []), ...patterned.flatMap(([, all]) => all), ...others];
}
