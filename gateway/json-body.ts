/**
 * A request's bytes into a JSON value that the codecs can parse: UTF-8 and JSON, both strictly, and no deeper than
 * anything honest is.
 */
import type { z } from 'zod';
import { RequestError } from './errors.ts';

/** The deepest honest bodies are JSON Schemas in tool definitions, at about 20 levels. */
const MAX_JSON_DEPTH = 100;

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws {RequestError} `bad_request`, saying what is wrong but never quoting the body */
export function parseJsonBody(body: Uint8Array): unknown {
  if (body.length === 0) throw new RequestError('bad_request', 'The request has no body; a JSON object is expected.');
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new RequestError('bad_request', 'The body is not valid UTF-8.');
  }
  const value = parseJson(text);
  if (isDeeperThan(value, MAX_JSON_DEPTH)) {
    throw new RequestError('bad_request', `The body is nested more than ${MAX_JSON_DEPTH} levels deep.`);
  }
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    // V8's message quotes the text around the fault; the position alone tells as much.
    const position = error instanceof Error ? /position (\d+)/.exec(error.message)?.[1] : undefined;
    throw new RequestError(
      'bad_request',
      `The body is not valid JSON${position === undefined ? '' : ` (at position ${position})`}.`,
    );
  }
}

/** Walks level by level, so that no input can exhaust the stack. */
function isDeeperThan(value: unknown, levels: number): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > levels) return true;
    level = level.flatMap((one) => (typeof one === 'object' && one !== null ? Object.values(one) : []));
  }
  return false;
}

/** @throws {RequestError} `bad_request` that names the first field at fault */
export function parseBody<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issue = firstIssue(result.error.issues);
  const param = fieldPath(issue.path);
  const message = issue.message.replace(/^Invalid input: /, '');
  throw new RequestError('bad_request', `${param === '' ? 'The body' : param}: ${message}`, {
    param: param === '' ? undefined : param,
  });
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
