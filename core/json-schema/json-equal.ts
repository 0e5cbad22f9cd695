import { isRecord } from '../json.ts';

/** Whether two JSON values are the same, by JSON Schema's measure: the order of members says nothing, 1.0 is 1. */
export function jsonEqual(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((item, index) => jsonEqual(item, other[index]));
  }
  if (isRecord(one) && isRecord(other)) {
    const names = Object.keys(one);
    return (
      names.length === Object.keys(other).length &&
      names.every((name) => Object.hasOwn(other, name) && jsonEqual(one[name], other[name]))
    );
  }
  return one === other;
}
