/** Ids of what is made for a client: as long as OpenAI's, and never twice the same. */
import { randomUUID } from 'node:crypto';

/** @returns the prefix and 24 hexadecimal digits. (UUIDs are drawn many at a time; single bytes cost a system call.) */
export function objectId(prefix: string): string {
  return prefix + randomUUID().replaceAll('-', '').slice(0, 24);
}
