/**
 * The lists of a body, item by item. A schema walks a value in one go, so a body's own schema leaves its lists unread,
 * and each item of them is read in a step.
 */
import * as z from 'zod';
import type { Steps } from '../core/steps.ts';
import { RequestError } from './errors.ts';
import { parseAt } from './json-body.ts';

/** A list whose items are read later, by `parseItems`. */
export const unreadItems = z.array(z.unknown());

/** Values and keys of one item, which is read in one go: a message of 10,000 short parts has as many. */
export const MAX_ITEM_NODES = 50_000;

/**
 * @param field where the list stands in the body
 * @throws {RequestError} `bad_request` that names the first field at fault
 */
export function* parseItems<Schema extends z.ZodType>(
  schema: Schema,
  items: readonly unknown[],
  field: string,
): Steps<z.output<Schema>[]> {
  const parsed: z.output<Schema>[] = [];
  for (const [index, item] of items.entries()) {
    if (nodesLeft(item, MAX_ITEM_NODES) < 0) throw tooLarge(`${field}[${index}]`);
    parsed.push(parseAt(schema, item, [field, index]));
    yield;
  }
  return parsed;
}

/** The same for a list that need not be there. */
export function* parseItemsIfAny<Schema extends z.ZodType>(
  schema: Schema,
  items: readonly unknown[] | null | undefined,
  field: string,
): Steps<z.output<Schema>[] | undefined> {
  return items == null ? undefined : yield* parseItems(schema, items, field);
}

/** @returns what is left of so many values and keys; less than 0 where the value has more, and then no more is counted */
function nodesLeft(value: unknown, most: number): number {
  let left = most - 1;
  if (typeof value !== 'object' || value === null) return left;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  if (!Array.isArray(value)) left -= members.length;
  for (const member of members) {
    if (left < 0) return left;
    left = nodesLeft(member, left);
  }
  return left;
}

function tooLarge(at: string): RequestError {
  const message = `${at} has more than ${MAX_ITEM_NODES.toLocaleString('en-US')} values and keys. Split it up.`;
  return new RequestError('bad_request', message, { param: at });
}
