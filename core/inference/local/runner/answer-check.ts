/**
 * A second look at an answer that was written under a grammar: a JSON Schema validator that knows nothing of the grammar
 * reads it. What fails here is our fault, and the client shall hear of it rather than trust the answer.
 */
import { runInNewContext } from 'node:vm';
import { Validator, type Schema } from '@cfworker/json-schema';
import { isRecord } from '../../../json.ts';
import { ServiceError } from '../../../errors.ts';
import type { HeldSchema } from './held-schema.ts';

/** The schema's patterns are its client's, and JavaScript's own expressions can take for ever. */
const MAX_MS = 100;

/** Longer answers are not looked at again. */
const MAX_LENGTH = 1_000_000;

/** @throws {ServiceError} `engine_failed` for an answer that does not fit */
export function checkAnswer(text: string, { schema, gaps }: HeldSchema): void {
  // What isn't held to can't be asked for; its client knows.
  if (gaps.length > 0 || text.length > MAX_LENGTH || !isValidated(schema)) return;
  if (fits(parsed(text), schema)) return;
  throw new ServiceError('engine_failed', 'The answer does not fit the JSON schema. Try again.');
}

/** @returns undefined for what is no JSON, which no schema takes */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** @returns true for one that can't be judged, or not in time: the grammar has judged it already */
function fits(value: unknown, schema: Schema): boolean {
  if (value === undefined) return false;
  const check = (): boolean => new Validator(schema, '2020-12').validate(value).valid;
  try {
    return runInNewContext('check()', { check }, { timeout: MAX_MS }) === true;
  } catch {
    return true;
  }
}

/** OpenAPI 3.0 and draft 4 say some things in words that this validator takes for something else. */
function isValidated(schema: unknown): schema is Schema {
  const waiting: unknown[] = [schema];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (Array.isArray(next)) waiting.push(...next);
    if (!isRecord(next)) continue;
    if ('nullable' in next || next['exclusiveMinimum'] === true || next['exclusiveMaximum'] === true) return false;
    waiting.push(...Object.values(next));
  }
  return isRecord(schema);
}
