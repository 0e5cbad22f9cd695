/** Which row of the route table a request is for, and what it wants of it. */
import findMyWay from 'find-my-way';
import { RequestError } from '../errors.ts';
import type { Route } from '../route.ts';
import { withoutAlias } from '../path-alias.ts';

export interface Target {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  /**
   * `preflight`: a browser asks first, without any credential, so policy has nothing to judge yet.
   * `other`: the path exists, and has no such method. `route` is one of its rows.
   */
  readonly wants: 'answer' | 'preflight' | 'other';
  /** Every row of this path. */
  readonly siblings: readonly Route[];
}

export interface Router {
  /**
   * @param url as the client wrote it
   * @returns undefined where there is nothing at this address; a slash at its end is no matter
   * @throws {RequestError} `bad_request` for an address that can't be read
   */
  find(method: string, url: string): Target | undefined;
}

/** Longer than any id, ours or a model's. */
const MAX_PARAMETER_LENGTH = 512;

export function createRouter(routes: readonly Route[]): Router {
  // An address that can't be read has a handler as well, and no rows.
  const router = findMyWay({
    maxParamLength: MAX_PARAMETER_LENGTH,
    ignoreTrailingSlash: true,
    querystringParser: () => undefined,
    onBadUrl: () => undefined,
  });
  const paths = new Map<unknown, Siblings>();
  for (const [path, siblings] of byPath(routes)) {
    const handler = (): void => undefined;
    paths.set(handler, siblings);
    // For every method: there is one tree, and the rows of a path are looked through here.
    router.on('GET', path, handler);
  }
  return {
    find(method, url) {
      const found = router.find('GET', withoutAlias(url));
      if (found === null) return undefined;
      const siblings = paths.get(found.handler);
      if (siblings === undefined) throw new RequestError('bad_request', 'The address is malformed.');
      const params = textParameters(found.params);
      // A name is never empty.
      if (Object.values(params).includes('')) return undefined;
      return { ...rowFor(method, siblings), params, siblings };
    },
  };
}

type Siblings = readonly [Route, ...Route[]];

function rowFor(method: string, siblings: Siblings): Pick<Target, 'route' | 'wants'> {
  const [first] = siblings;
  const wanted = method === 'HEAD' ? 'GET' : method;
  const route = siblings.find((one) => one.method === wanted);
  if (route !== undefined) return { route, wants: 'answer' };
  return { route: first, wants: method === 'OPTIONS' ? 'preflight' : 'other' };
}

function byPath(routes: readonly Route[]): ReadonlyMap<string, Siblings> {
  const paths = new Map<string, [Route, ...Route[]]>();
  for (const route of routes) {
    const siblings = paths.get(route.path);
    if (siblings === undefined) paths.set(route.path, [route]);
    else siblings.push(route);
  }
  return paths;
}

function textParameters(parameters: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).map(([name, value = '']) => [name, value]));
}
