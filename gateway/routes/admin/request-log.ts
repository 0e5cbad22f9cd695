/** `/admin/requests`: the request log, for the owner. */
import { parseRequestQuery } from '../../request-log/request-query.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';

export const listRequests = adminRoute({
  method: 'GET',
  path: '/admin/requests',
  summary:
    'The request log, the newest first, and figures over all that the filter lets through: search, method, source, status, errors, since, until, limit, cursor.',
  handle({ query }, { requestLog, now }: Pick<Services, 'requestLog' | 'now'>) {
    const { filter, limit, beforeId } = parseRequestQuery(Object.fromEntries(query), now());
    // One more than asked for tells whether there are more.
    const found = requestLog.list(filter, { limit: limit + 1, beforeId });
    const requests = found.slice(0, limit);
    const next = found.length > limit ? { next_cursor: String(requests.at(-1)?.id) } : {};
    return { body: { requests, stats: requestLog.stats(filter), ...next } };
  },
});

export const clearRequests = adminRoute({
  method: 'DELETE',
  path: '/admin/requests',
  summary: 'Empty the request log.',
  handle: (_request, { requestLog }: Pick<Services, 'requestLog'>) => ({ body: { deleted: requestLog.clear() } }),
});
