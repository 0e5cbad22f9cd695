/** A server's request log as its owner reads it over HTTP. */
import type { LoggedRequest, RequestStats } from '../../gateway/request-log/request-log-reader.ts';
import type { TestServer } from './server.ts';

export interface LogPage {
  readonly requests: readonly LoggedRequest[];
  readonly stats: RequestStats;
  readonly next_cursor?: string;
}

export async function readLog({ url }: TestServer, query = ''): Promise<LogPage> {
  return (await (await fetch(`${url}/admin/requests?${query}`)).json()) as LogPage;
}

/** The newest row but for those of looking at the log. */
export async function lastRow(server: TestServer): Promise<LoggedRequest> {
  const { requests } = await readLog(server, 'limit=50');
  return requests.find(({ path }) => path !== '/admin/requests')!;
}

export const post = ({ url }: TestServer, path: string, body: object, init: RequestInit = {}) =>
  fetch(`${url}${path}`, { method: 'POST', body: JSON.stringify({ model: 'foundation', ...body }), ...init });

export const user = (content: string) => ({ messages: [{ role: 'user', content }] });

/** Goes on for minutes, if nobody stops it. */
export const endless = {
  ...user('Hello'),
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'long', schema: { type: 'array', items: { type: 'string', minLength: 50 }, minItems: 1000 } },
  },
};
