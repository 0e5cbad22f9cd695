/** Which row of the route table a request is for, and what it wants of it. */
import findMyWay, { type HTTPMethod } from 'find-my-way';
import { RequestError } from '../errors.ts';
import type { Method, Route } from '../route.ts';
import { withoutAlias } from '../path-alias.ts';

export interface Target {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
  /**
   * `preflight`: a browser asks first, without any credential, so policy has nothing to judge yet.
   * `other`: the path exists, and has no such method.
   */
  readonly wants: 'answer' | 'preflight' | 'other';
  /** Every row of this path. */
  readonly siblings: readonly Route[];
}

export interface Router {
  /**
   * @param url as the client wrote it
   * @returns undefined where there is nothing at this address, or where its method is one that we never heard of
   * @throws {RequestError} `bad_request` for an address that can't be read
   */
  find(method: string, url: string): Target | undefined;
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE'];

/** Longer than any id, ours or a model's. */
const MAX_PARAMETER_LENGTH = 512;

type Row = Omit<Target, 'params'>;

export function createRouter(routes: readonly Route[]): Router {
  // An address that can't be read has a handler as well, and no row.
  const router = findMyWay({
    maxParamLength: MAX_PARAMETER_LENGTH,
    querystringParser: () => undefined,
    onBadUrl: () => undefined,
  });
  const rows = new Map<unknown, Row>();
  const add = (method: HTTPMethod, path: string, row: Row): void => {
    const handler = (): void => undefined;
    rows.set(handler, row);
    router.on(method, path, handler);
  };
  for (const [path, siblings] of byPath(routes)) addPath(path, siblings, add);
  return {
    find(method, url) {
      const known = KNOWN_METHODS.find((one) => one === method);
      const found = known === undefined ? null : router.find(known, withoutAlias(url));
      if (found === null) return undefined;
      const row = rows.get(found.handler);
      if (row === undefined) throw new RequestError('bad_request', 'The address is malformed.');
      const params = textParameters(found.params);
      // A name is never empty.
      return Object.values(params).includes('') ? undefined : { ...row, params };
    },
  };
}

const KNOWN_METHODS = [...METHODS, 'HEAD', 'OPTIONS', 'PATCH'] as const;

function byPath(routes: readonly Route[]): ReadonlyMap<string, readonly [Route, ...Route[]]> {
  const paths = new Map<string, [Route, ...Route[]]>();
  for (const route of routes) {
    const siblings = paths.get(route.path);
    if (siblings === undefined) paths.set(route.path, [route]);
    else siblings.push(route);
  }
  return paths;
}

function addPath(
  path: string,
  siblings: readonly [Route, ...Route[]],
  add: (method: HTTPMethod, path: string, row: Row) => void,
): void {
  const [first] = siblings;
  for (const route of siblings) {
    add(route.method, path, { route, siblings, wants: 'answer' });
    if (route.method === 'GET') add('HEAD', path, { route, siblings, wants: 'answer' });
  }
  add('OPTIONS', path, { route: first, siblings, wants: 'preflight' });
  const others = METHODS.filter((method) => siblings.every((route) => route.method !== method));
  for (const method of [...others, 'PATCH'] as const) add(method, path, { route: first, siblings, wants: 'other' });
}

function textParameters(parameters: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(parameters).map(([name, value = '']) => [name, value]));
}
