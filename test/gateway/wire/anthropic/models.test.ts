/** Pages of Anthropic's list of models, in both directions. */
import { expect, test } from 'vitest';
import type { Model } from '../../../../core/inference/catalog.ts';
import { encodeModelPage } from '../../../../gateway/wire/anthropic/models.ts';

const models = ['a', 'b', 'c', 'd', 'e'].map((id): Model => ({
  kind: 'local',
  id,
  path: `/${id}.gguf`,
  sizeBytes: 1,
  modifiedAtMs: 0,
  origin: 'folder',
  isBuiltIn: false,
}));

function page(query: string): unknown {
  const { data, ...rest } = encodeModelPage(models, new URLSearchParams(query)) as { data: { id: string }[] };
  return { ids: data.map(({ id }) => id).join(''), ...rest };
}

test.each([
  ['', { ids: 'abcde', has_more: false, first_id: 'a', last_id: 'e' }],
  ['limit=2', { ids: 'ab', has_more: true, first_id: 'a', last_id: 'b' }],
  ['limit=2&after_id=b', { ids: 'cd', has_more: true, first_id: 'c', last_id: 'd' }],
  ['limit=2&after_id=d', { ids: 'e', has_more: false, first_id: 'e', last_id: 'e' }],
  ['after_id=e', { ids: '', has_more: false, first_id: null, last_id: null }],
  ['limit=2&before_id=e', { ids: 'cd', has_more: true, first_id: 'c', last_id: 'd' }],
  ['limit=9&before_id=c', { ids: 'ab', has_more: false, first_id: 'a', last_id: 'b' }],
  ['before_id=a', { ids: '', has_more: false, first_id: null, last_id: null }],
])('?%s', (query, expected) => {
  expect(page(query)).toEqual(expected);
});

test.each(['limit=0', 'limit=1001', 'limit=x', 'after_id=nope', 'before_id=nope'])('?%s is refused', (query) => {
  const param = query.split('=')[0];
  expect(() => page(query)).toThrow(expect.objectContaining({ code: 'bad_request', param }));
});
