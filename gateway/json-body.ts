/** A JSON value into what a codec may rely on: the schema's output, or an error that names one field in few words. */
import type * as z from 'zod';
import { RequestError } from './errors.ts';

/**
 * Of ten thousand messages that are all wrong, one is looked at. What stops Zod there is its own, and not in its
 * published types; a test sees to it that it does.
 */
const FIRST_ISSUE: z.core.ParseContextInternal<z.core.$ZodIssue> = { abortEarly: true };

/** @throws {RequestError} `bad_request` that names the first field at fault */
export function parseBody<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  return parseAt(schema, value, []);
}

/** For a value that stands somewhere in a body. @throws {RequestError} `bad_request` that names the first field at fault */
export function parseAt<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  path: readonly (string | number)[],
): z.output<Schema> {
  const result = schema.safeParse(value, FIRST_ISSUE);
  if (result.success) return result.data;
  const issue = firstIssue(result.error.issues);
  // Both may repeat keys that the client chose.
  const param = shortened(fieldPath([...path, ...issue.path]));
  const message = shortened(issue.message.replace(/^Invalid input: /, ''));
  throw new RequestError('bad_request', `${param === '' ? 'The body' : param}: ${message}`, {
    param: param === '' ? undefined : param,
  });
}

/** What an error says of a field, in characters. */
const MAX_LENGTH = 300;

function shortened(text: string): string {
  return text.length <= MAX_LENGTH ? text : `${text.slice(0, MAX_LENGTH)}…`;
}

/** Of a union's many complaints, the one that got furthest into the value is about the form the client meant. */
function firstIssue(issues: readonly z.core.$ZodIssue[]): {
  readonly path: readonly PropertyKey[];
  readonly message: string;
} {
  const [issue] = issues;
  if (issue === undefined) return { path: [], message: 'the body is not valid' };
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return issue;
  const deepest = issue.errors
    .map((branch) => firstIssue(branch))
    .reduce((best, candidate) => (candidate.path.length > best.path.length ? candidate : best));
  return deepest.path.length === 0 ? issue : { path: [...issue.path, ...deepest.path], message: deepest.message };
}

/** `messages[0].content`, the way clients write it. */
function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}
