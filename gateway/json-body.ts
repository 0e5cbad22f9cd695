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
  const message = shortened(issue.message);
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
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) return { path: issue.path, message: wordsOf(issue) };
  const branches = issue.errors.map((branch) => firstIssue(branch));
  const deepest = branches.reduce((best, candidate) => (candidate.path.length > best.path.length ? candidate : best));
  if (deepest.path.length > 0) return { path: [...issue.path, ...deepest.path], message: deepest.message };
  const message = issue.message === 'Invalid input' ? anyOf(branches.map((branch) => branch.message)) : issue.message;
  return { path: issue.path, message };
}

/** What a schema says in its own words stays; Zod's become ours. */
function wordsOf(issue: z.core.$ZodIssue): string {
  if (issue.code === 'invalid_value' && issue.message.startsWith('Invalid ')) {
    return `expected ${inWords(issue.values.map((value) => JSON.stringify(value)))}`;
  }
  if (issue.code === 'invalid_union' && issue.message.startsWith('Invalid discriminator') && 'options' in issue) {
    const options: readonly unknown[] = Array.isArray(issue.options) ? issue.options : [];
    return `expected ${inWords(options.map((option) => JSON.stringify(option)))}`;
  }
  return issue.message
    .replace(/^Invalid input: /, '')
    .replace(/^expected int, received number$/, 'expected a whole number');
}

/** Of a value that could have had several forms, and has none of them. */
function anyOf(messages: readonly string[]): string {
  const expected = messages.map((message) => /^expected (.*?)(?:, received .*)?$/s.exec(message)?.[1] ?? message);
  return `expected ${inWords([...new Set(expected)])}`;
}

/** `a, b or c` */
function inWords(items: readonly string[]): string {
  const last = items.at(-1) ?? 'something else';
  return items.length < 2 ? last : `${items.slice(0, -1).join(', ')} or ${last}`;
}

/** `messages[0].content`, the way clients write it. */
function fieldPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === 'number' ? `${text}[${key}]` : text === '' ? String(key) : `${text}.${String(key)}`),
    '',
  );
}
