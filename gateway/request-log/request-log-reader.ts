/** The request log as it is asked: rows, and figures over them. */
import type { Database } from '../../storage/database.ts';
import type { RequestFilter } from './request-query.ts';

/** A row as it is shown, by `GET /admin/requests` and by `postern logs --json`. */
export interface LoggedRequest {
  readonly id: number;
  /** When it came, ISO 8601. */
  readonly time: string;
  readonly source: string;
  readonly method: string;
  readonly path: string;
  readonly route: string | null;
  readonly status: number;
  readonly duration_ms: number;
  readonly model: string | null;
  /** The name that the client asked for. */
  readonly requested_model: string | null;
  readonly input_tokens: number | null;
  readonly cached_tokens: number | null;
  readonly output_tokens: number | null;
  readonly tokens_per_second: number | null;
  readonly time_to_first_token_ms: number | null;
  readonly finish_reason: string | null;
  readonly error_code: string | null;
  readonly error_message: string | null;
  readonly caller: string | null;
  readonly user_agent: string | null;
  readonly request_id: string;
  /** Null unless the owner wants bodies kept. */
  readonly request_body: string | null;
  readonly response_body: string | null;
}

/** Over all rows that a filter lets through; null where there is nothing to divide by. */
export interface RequestStats {
  readonly requests: number;
  /** From 0 to 1: those that did not fail. */
  readonly success_rate: number | null;
  readonly average_duration_ms: number | null;
  /** Answered with a status from 400 on, or broken off in mid-stream by a failure of ours. */
  readonly errors: number;
  /** Requests that asked a model for an answer. */
  readonly inferences: number;
  /** Of all the time in which models wrote. */
  readonly average_tokens_per_second: number | null;
}

interface Page {
  readonly limit: number;
  readonly beforeId?: number | undefined;
}

export interface RequestLogReader {
  /** The newest first. */
  list(filter: RequestFilter, page: Page): readonly LoggedRequest[];
  /** What was logged after this one, in that order. */
  after(id: number, filter: RequestFilter): readonly LoggedRequest[];
  stats(filter: RequestFilter): RequestStats;
  /** 0 where nothing was ever logged. */
  lastId(): number;
}

type Bindings = Readonly<Record<string, string | number | null>>;

/** A client that leaves is nobody's failure. */
const FAILED = `(status >= 400 AND status <> 499 OR finish_reason = 'error')`;

type Row = Omit<LoggedRequest, 'time'> & { readonly at_ms: number };

const COLUMNS = `id, at_ms, source, method, path, route, status, duration_ms, model, requested_model, input_tokens, cached_tokens,
  output_tokens, tokens_per_second, time_to_first_token_ms, finish_reason, error_code, error_message, caller, user_agent, request_id,
  request_body, response_body`;

/** What of the log one step of following it takes in. */
const MAX_ROWS_AFTER = 1000;

/** @param database whose request log is there */
export function createRequestLogReader(database: Database): RequestLogReader {
  const rows = (filter: RequestFilter, more: string, order: string, parameters: Bindings): LoggedRequest[] =>
    database
      .prepare<[Bindings], Row>(`SELECT ${COLUMNS} FROM requests WHERE ${conditions(filter)} AND ${more} ${order}`)
      .all({ ...parametersOf(filter), ...parameters })
      .map(({ id, at_ms, ...row }) => ({ id, time: new Date(at_ms).toISOString(), ...row }));
  return {
    list: (filter, { limit, beforeId = Number.MAX_SAFE_INTEGER }) =>
      rows(filter, 'id < @beforeId', 'ORDER BY id DESC LIMIT @limit', { beforeId, limit }),
    after: (id, filter) => rows(filter, 'id > @id', `ORDER BY id LIMIT ${MAX_ROWS_AFTER}`, { id }),
    stats: (filter) => readStats(database, filter),
    lastId: () => database.prepare<[], { id: number | null }>('SELECT max(id) AS id FROM requests').get()?.id ?? 0,
  };
}

interface Totals {
  readonly requests: number;
  readonly errors: number | null;
  readonly average_duration_ms: number | null;
  readonly inferences: number;
  readonly average_tokens_per_second: number | null;
}

function readStats(database: Database, filter: RequestFilter): RequestStats {
  const totals = database
    .prepare<[Bindings], Totals>(
      `SELECT count(*) AS requests, sum(${FAILED}) AS errors, avg(duration_ms) AS average_duration_ms,
         count(finish_reason) AS inferences,
         sum(tokens_per_second * generation_ms) / sum(generation_ms) AS average_tokens_per_second
       FROM requests WHERE ${conditions(filter)}`,
    )
    .get(parametersOf(filter));
  if (totals === undefined) throw new TypeError('an aggregate without a row');
  const { requests, errors, ...averages } = totals;
  const failed = errors ?? 0;
  return {
    requests,
    success_rate: requests === 0 ? null : (requests - failed) / requests,
    errors: failed,
    ...averages,
  };
}

const CONDITIONS: Readonly<Record<keyof RequestFilter, string>> = {
  search: ['path', 'model', 'requested_model', 'error_code', 'user_agent']
    .map((column) => `${column} LIKE @search ESCAPE '\\'`)
    .join(' OR '),
  method: 'method = @method',
  source: 'source = @source',
  statusClass: 'status / 100 = @statusClass',
  errors: `NOT @errors OR ${FAILED}`,
  sinceMs: 'at_ms >= @sinceMs',
  untilMs: 'at_ms < @untilMs',
};

function conditions(filter: RequestFilter): string {
  const all = Object.entries(CONDITIONS).flatMap(([name, condition]) => (name in filter ? [`(${condition})`] : []));
  return ['TRUE', ...all].join(' AND ');
}

function parametersOf({ search = '', errors = false, ...filter }: RequestFilter): Bindings {
  return { ...filter, errors: Number(errors), search: `%${search.replace(/[\\%_]/g, '\\$&')}%` };
}
