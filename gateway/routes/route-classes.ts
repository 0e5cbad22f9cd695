/** What the routes of one class have in common, said once. */
import { NO_BODY_BYTES, PUBLIC_BODY_BYTES } from '../bounds.ts';
import type { Method, Route } from '../route.ts';
import type { Dialect } from '../wire/dialect.ts';

type Row<Needs> = Pick<Route<Needs>, 'method' | 'path' | 'summary' | 'body' | 'handle'>;

interface AdminRow<Needs> extends Row<Needs>, Pick<Route<Needs>, 'isPolled'> {
  readonly maxBodyBytes?: number;
  /** Whose clients look for it, if not our own. */
  readonly dialect?: Dialect;
}

/** For the owner, who sends little. */
export function adminRoute<Needs>({ dialect, ...row }: AdminRow<Needs>): Route<Needs> {
  return { maxBodyBytes: NO_BODY_BYTES, ...row, access: 'admin', clientPrefix: dialect?.prefix ?? '' };
}

interface InferenceRow<Needs> extends Row<Needs> {
  /** Whose clients look for it. */
  readonly dialect: Dialect;
  readonly maxBodyBytes?: number;
}

/** For whoever may use models. */
export function inferenceRoute<Needs>({ dialect, ...row }: InferenceRow<Needs>): Route<Needs> {
  return { maxBodyBytes: bodyBytes(row.method), ...row, access: 'inference', clientPrefix: dialect.prefix ?? '/v1' };
}

/** What a route takes that has no bound of its own. */
export function bodyBytes(method: Method): number {
  return method === 'POST' || method === 'PUT' ? PUBLIC_BODY_BYTES : NO_BODY_BYTES;
}
