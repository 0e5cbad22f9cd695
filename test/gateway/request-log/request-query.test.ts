import { expect, test } from 'vitest';
import { RequestError } from '../../../gateway/errors.ts';
import { parseRequestQuery } from '../../../gateway/request-log/request-query.ts';

const NOW = Date.parse('2026-01-31T12:00:00Z');
const parse = (query: string) => parseRequestQuery(Object.fromEntries(new URLSearchParams(query)), NOW);

test.each([
  ['', { filter: { errors: false }, limit: 100, beforeId: undefined }],
  ['limit=1000&cursor=17', { filter: { errors: false }, limit: 1000, beforeId: 17 }],
  [
    'method=post&source=sealed&status=4xx&search=a+b',
    { filter: { method: 'POST', source: 'sealed', statusClass: 4, search: 'a b' } },
  ],
  ['errors=true&since=15m', { filter: { errors: true, sinceMs: NOW - 15 * 60_000 } }],
  ['since=90s&until=1d', { filter: { sinceMs: NOW - 90_000, untilMs: NOW - 86_400_000 } }],
  ['since=2026-01-31T11:00:00Z', { filter: { sinceMs: NOW - 3_600_000 } }],
  ['since=2026-01-31T13:00:00%2B02:00', { filter: { sinceMs: NOW - 3_600_000 } }],
])('%j', (query, parsed) => {
  expect(parse(query)).toMatchObject(parsed);
});

test.each([
  ['limit=0', 'limit'],
  ['limit=1001', 'limit'],
  ['limit=1.5', 'limit'],
  ['limit=', 'limit'],
  ['cursor=abc', 'cursor'],
  ['cursor=-1', 'cursor'],
  ['method=FETCH', 'method'],
  ['source=ui', 'source'],
  ['status=404', 'status'],
  ['errors=yes', 'errors'],
  ['since=yesterday', 'since'],
  ['since=5', 'since'],
  ['until=2026-13-45', 'until'],
  ['search=', 'search'],
  [`search=${'x'.repeat(201)}`, 'search'],
  ['frobnicate=1', 'frobnicate'],
])('%s is refused by name', (query, param) => {
  let error: unknown;
  try {
    parse(query);
  } catch (thrown) {
    error = thrown;
  }
  expect(error).toBeInstanceOf(RequestError);
  expect(error).toMatchObject({ code: 'bad_request', param, message: expect.stringMatching(`^${param}: `) });
});
