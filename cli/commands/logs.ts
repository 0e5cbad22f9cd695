/** `postern logs`: the request log, read from the database itself, so that it can be seen while no server runs. */
import { RequestError } from '../../gateway/errors.ts';
import { openRequestLog } from '../../gateway/request-log/request-log.ts';
import type { RequestLogReader, RequestStats } from '../../gateway/request-log/request-log-reader.ts';
import { parseRequestQuery, type RequestQuery } from '../../gateway/request-log/request-query.ts';
import { CommandError, UsageError, type Command, type CommandInput } from '../command.ts';
import { followRequests, type PrintRequests } from '../follow-requests.ts';
import { formatDuration, REQUEST_HEADS, requestLine } from '../request-line.ts';

const DEFAULT_LIMIT = '50';

export const logs: Command = {
  name: 'logs',
  summary: 'show the requests that were answered',
  usage: `Usage: postern logs [--follow] [--stats] [--json] [filters]

Shows the newest requests, the newest last. Prompts and answers are not logged, unless the setting log.bodies is true.

  -f, --follow       go on with new requests as they come, until Ctrl-C
  --stats            figures over all requests that the filters let through, in place of the requests
  --json             one JSON object per line
  -n, --limit N      how many (default ${DEFAULT_LIMIT}, at most 1000)

Filters:
  --search TEXT      part of a path, a model, an error code or a user agent
  --method METHOD    GET, POST, ...
  --source SOURCE    http, chat or sealed (through the encrypted channel)
  --errors           only requests that failed
  --since TIME       not before 2026-01-31T12:00:00Z, or not more than 90s, 15m, 2h or 7d ago

Example:
  postern logs --follow --errors --since 1h
`,
  options: {
    follow: { type: 'boolean', short: 'f' },
    stats: { type: 'boolean' },
    json: { type: 'boolean' },
    limit: { type: 'string', short: 'n' },
    search: { type: 'string' },
    method: { type: 'string' },
    source: { type: 'string' },
    errors: { type: 'boolean' },
    since: { type: 'string' },
  },
  async run(input, context) {
    const query = readQuery(input);
    const { flags } = input;
    const { terminal, home, stop } = context;
    const isJson = flags['json'] === true;
    const print: PrintRequests = (requests) => {
      for (const request of requests) terminal.print(isJson ? JSON.stringify(request) : requestLine(request));
    };
    if (flags['follow'] === true && flags['stats'] === true)
      throw new UsageError('either --follow or --stats, not both.');
    const log = openLog(home);
    const { reader } = log;
    try {
      if (flags['stats'] === true) {
        const stats = reader.stats(query.filter);
        terminal.print(isJson ? JSON.stringify(stats) : statsTable(stats));
      } else {
        if (!isJson && terminal.isInteractive) terminal.print(REQUEST_HEADS);
        const from = printNewest(reader, query, print);
        if (flags['follow'] === true) await followRequests(reader, { filter: query.filter, from, print, stop });
      }
    } finally {
      log.close();
    }
    return 0;
  },
};

function readQuery({ flags, positionals }: CommandInput): RequestQuery {
  if (positionals.length > 0) throw new UsageError(`"logs" takes no argument "${positionals.join(' ')}".`);
  const { limit = DEFAULT_LIMIT, search, method, source, errors, since } = flags;
  const given = { limit, search, method, source, since, errors: errors === true ? 'true' : undefined };
  try {
    return parseRequestQuery(given, Date.now());
  } catch (error) {
    throw error instanceof RequestError ? new UsageError(`--${error.message}`) : error;
  }
}

function openLog(home: string): NonNullable<ReturnType<typeof openRequestLog>> {
  const log = openRequestLog(home);
  if (log === undefined)
    throw new CommandError(`nothing was logged in ${home} yet. "postern serve" starts the service.`);
  return log;
}

/** @returns the last request that there is, whether or not it was asked for */
function printNewest(reader: RequestLogReader, { filter, limit }: RequestQuery, print: PrintRequests): number {
  const lastId = reader.lastId();
  print(reader.list(filter, { limit, beforeId: lastId + 1 }).toReversed());
  return lastId;
}

function statsTable(stats: RequestStats): string {
  const { success_rate: success, average_duration_ms: average, average_tokens_per_second: speed } = stats;
  const rows: readonly (readonly [string, string])[] = [
    ['requests', String(stats.requests)],
    ['success rate', success === null ? '-' : `${(success * 100).toFixed(1)} %`],
    ['average time', average === null ? '-' : formatDuration(average)],
    ['errors', String(stats.errors)],
    ['inferences', String(stats.inferences)],
    ['tokens/second', speed === null ? '-' : speed.toFixed(1)],
  ];
  return rows.map(([name, value]) => `${name.padEnd(14)} ${value.padStart(10)}`).join('\n');
}
