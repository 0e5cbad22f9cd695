/** How many files the service may open: each connection takes one. */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { devNull } from 'node:os';

/** Its database, sockets, a runner's pipes, and clients. With few more than it takes to start, parts of it fail one by one. */
const NEEDED = 64;
/** What the service opens beside connections: its database, runners, downloads, the way to relays. */
const KEPT_BACK = 256;
/** Where the system does not tell. Node itself raises the limit as far as it may (macOS: 10,240 and more). */
const UNTOLD_LIMIT = 4096;

/** @throws `EMFILE` where the system lets this process open fewer */
export function requireOpenFiles(): void {
  const opened: number[] = [];
  try {
    while (opened.length < NEEDED) opened.push(openSync(devNull, 'r'));
  } finally {
    for (const file of opened) closeSync(file);
  }
}

/** More are of no use, and make the search for one that can go longer. */
const MAX_CONNECTIONS = 10_000;

/** How many connections may be open, so that there are files left for all else. */
export function maxConnections(): number {
  const limit = openFileLimit();
  return Math.min(MAX_CONNECTIONS, limit - Math.min(KEPT_BACK, Math.floor(limit / 2)));
}

/** Linux: proc_pid_limits(5), the soft limit. */
function openFileLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return limit === undefined ? UNTOLD_LIMIT : Number(limit);
  } catch {
    return UNTOLD_LIMIT;
  }
}
