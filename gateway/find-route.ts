/** The row of the route table that an address belongs to, for whoever asks without sending a request. */
import type { Method, Route } from './route.ts';
import { routes, withoutAlias } from './routes.ts';

/** `undefined` where there is none. Of two that fit, the one with fewer names left open, as the server's router does. */
export function findRoute(method: Method, path: string): Route | undefined {
  const segments = withoutAlias(path.replace(/[?#].*$/s, '')).split('/');
  return routes
    .filter((route) => route.method === method && fits(route.path.split('/'), segments))
    .toSorted((one, other) => openness(one) - openness(other))[0];
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
