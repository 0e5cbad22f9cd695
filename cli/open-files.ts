/** How many files the service may open, found out before it starts. */
import { closeSync, openSync } from 'node:fs';
import { devNull } from 'node:os';

/** Its database, sockets, a runner's pipes, and clients. With few more than it takes to start, parts of it fail one by one. */
const NEEDED = 64;

/** @throws `EMFILE` where the system lets this process open fewer */
export function requireOpenFiles(): void {
  const opened: number[] = [];
  try {
    while (opened.length < NEEDED) opened.push(openSync(devNull, 'r'));
  } finally {
    for (const file of opened) closeSync(file);
  }
}
