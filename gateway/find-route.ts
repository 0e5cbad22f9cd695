/** The row of the route table that an address belongs to, for whoever asks without sending a request. */
import { NO_BODY_BYTES } from './bounds.ts';
import type { Method, Route } from './route.ts';
import { routes, withoutAlias } from './routes.ts';

/** `undefined` where there is none. Of two that fit, the one with fewer names left open, as the server's router does. */
export function findRoute(method: Method, path: string): Route | undefined {
  const segments = withoutAlias(path.replace(/[?#].*$/s, '')).split('/');
  return routes
    .filter((route) => route.method === method && fits(route.path.split('/'), segments))
    .toSorted((one, other) => openness(one) - openness(other))[0];
}

const METHODS: readonly Method[] = ['GET', 'POST', 'PUT', 'DELETE'];

/** The largest body that the route takes which is asked for; of one that does not exist, as much as it takes to say so. */
export function routeBodyBytes(method: string, path: string): number {
  const known = METHODS.find((one) => one === method);
  return (known === undefined ? undefined : findRoute(known, path))?.maxBodyBytes ?? NO_BODY_BYTES;
}

function fits(pattern: readonly string[], segments: readonly string[]): boolean {
  const hasRest = pattern.at(-1) === '*';
  if (hasRest ? segments.length < pattern.length : segments.length !== pattern.length) return false;
  return pattern.every(
    (part, at) => part === '*' || part === segments[at] || (part.startsWith(':') && segments[at] !== ''),
  );
}

function openness({ path }: Route): number {
  return path.split('/').filter((part) => part === '*' || part.startsWith(':')).length;
}
