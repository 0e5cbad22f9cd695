/** Which requests of the log are meant: the query of `GET /admin/requests`, and the flags of `postern logs`. */
import * as z from 'zod';
import { METHODS } from '../http/node-http.ts';
import { RequestError } from '../errors.ts';
import { REQUEST_SOURCES, type RequestSource } from './request-entry.ts';

/** Every condition that is there must hold. */
export interface RequestFilter {
  /** Part of a path, model, error code or user agent, in whatever case. */
  readonly search?: string;
  readonly method?: string;
  readonly source?: RequestSource;
  /** 4 stands for 400 to 499. */
  readonly statusClass?: number;
  /** Only what failed. */
  readonly errors?: boolean;
  /** Milliseconds since 1970, itself included. */
  readonly sinceMs?: number;
  /** Milliseconds since 1970, itself not included. */
  readonly untilMs?: number;
}

export interface RequestQuery {
  readonly filter: RequestFilter;
  readonly limit: number;
  /** Only what was logged before this one. */
  readonly beforeId: number | undefined;
}

const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @returns milliseconds since 1970, or undefined for what is no time */
function parseTime(text: string, nowMs: number): number | undefined {
  const [, count, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) return nowMs - Number(count) * (UNITS_MS[unit] ?? 0);
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : NaN;
  return Number.isNaN(ms) ? undefined : ms;
}

function time(nowMs: number) {
  return z.string().transform((text, context) => {
    const ms = parseTime(text, nowMs);
    if (ms !== undefined) return ms;
    context.addIssue('expected a time such as "2026-01-31T12:00:00Z", or an age such as "90s", "15m", "2h" or "7d"');
    return z.NEVER;
  });
}

function querySchema(nowMs: number) {
  return z.strictObject({
    search: z.string().min(1).max(200).optional(),
    method: z
      .string()
      .toUpperCase()
      .refine((name) => METHODS.includes(name), 'expected an HTTP method such as GET or POST')
      .optional(),
    source: z.enum(REQUEST_SOURCES).optional(),
    status: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']).optional(),
    errors: z.enum(['true', 'false']).optional(),
    since: time(nowMs).optional(),
    until: time(nowMs).optional(),
    limit: z
      .string()
      .regex(/^([1-9]\d{0,2}|1000)$/, 'expected a number from 1 to 1000')
      .default('100'),
    cursor: z
      .string()
      .regex(/^\d{1,15}$/, 'expected the next_cursor of an earlier answer')
      .optional(),
  });
}

/**
 * @param nowMs what an age is counted back from
 * @throws {RequestError} `bad_request`, whose `param` is the parameter at fault
 */
export function parseRequestQuery(query: Readonly<Record<string, unknown>>, nowMs: number): RequestQuery {
  const result = querySchema(nowMs).safeParse(query);
  if (!result.success) throw queryError(result.error.issues);
  const { search, method, source, status, errors, since, until, limit, cursor } = result.data;
  return {
    filter: {
      ...(search === undefined ? {} : { search }),
      ...(method === undefined ? {} : { method }),
      ...(source === undefined ? {} : { source }),
      ...(status === undefined ? {} : { statusClass: Number(status[0]) }),
      errors: errors === 'true',
      ...(since === undefined ? {} : { sinceMs: since }),
      ...(until === undefined ? {} : { untilMs: until }),
    },
    limit: Number(limit),
    beforeId: cursor === undefined ? undefined : Number(cursor),
  };
}

function queryError([issue]: readonly z.core.$ZodIssue[]): RequestError {
  if (issue?.code === 'unrecognized_keys') {
    const [name = ''] = issue.keys;
    return new RequestError('bad_request', `${name.slice(0, 40)}: there is no such parameter`, {
      param: name.slice(0, 40),
    });
  }
  const param = String(issue?.path[0] ?? '');
  const message = issue?.message.replace(/^Invalid (?:input|option): /, '') ?? 'not valid';
  return new RequestError('bad_request', `${param}: ${message}`, { param });
}
