/** Which row a request belongs to, and what it wants of it. */
import { describe, expect, test } from 'vitest';
import { createRouter } from '../../../gateway/pipeline/router.ts';
import type { Method } from '../../../gateway/route.ts';
import { routes } from '../../../gateway/routes.ts';

const router = createRouter(routes);

test.each(['', '/v1', '/api', '/v1/api'])('every row is found by its own method, under %s/…', (alias) => {
  for (const route of routes) {
    const url = `${alias}${route.path.replace(/:\w+|\*$/g, 'x')}?a=b`;
    expect(router.find(route.method, url), url).toMatchObject({ route, wants: 'answer' });
  }
});

describe('one path', () => {
  test.each<[string, 'answer' | 'preflight' | 'other', Method]>([
    ['GET', 'answer', 'GET'],
    ['HEAD', 'answer', 'GET'],
    ['POST', 'answer', 'POST'],
    ['OPTIONS', 'preflight', 'GET'],
    ['PUT', 'other', 'GET'],
    ['PATCH', 'other', 'GET'],
    ['PROPFIND', 'other', 'GET'],
    ['TRACE', 'other', 'GET'],
    ['get', 'other', 'GET'],
    ['', 'other', 'GET'],
  ])('%s wants: %s', (method, wants, rowMethod) => {
    const target = router.find(method, '/admin/keys');
    expect(target).toMatchObject({ wants, route: { path: '/admin/keys', method: rowMethod } });
    expect(target?.siblings.map((route) => route.method).toSorted()).toEqual(['DELETE', 'GET', 'POST']);
  });

  test('HEAD is another method where there is no GET', () => {
    expect(router.find('HEAD', '/chat/completions')).toMatchObject({ wants: 'other', route: { method: 'POST' } });
  });

  test.each(['/models/', '/v1/models/', '/v1/models/?a=b'])('%s is /models', (url) => {
    expect(router.find('GET', url)).toMatchObject({ wants: 'answer', route: { path: '/models' } });
  });
});

test.each([
  ['/nowhere'],
  ['/'.repeat(9)],
  ['/Models'],
  ['/models//'],
  ['//models'],
  ['/v1/v1/models'],
  ['/./models'],
  [`/tasks/${'x'.repeat(513)}`],
  ['/tasks/'],
])('%s is nowhere', (url) => {
  expect(router.find('GET', url)).toBe(undefined);
});

test('what stands for a name is decoded once, and a slash in it is not a slash', () => {
  expect(router.find('GET', '/tasks/a%2Fb%2525')?.params).toEqual({ id: 'a/b%25' });
});

test.each(['/tasks/%', '/%zz', '/tasks/%c3%28'])('%s is malformed', (url) => {
  expect(() => router.find('GET', url)).toThrow('The address is malformed.');
});
