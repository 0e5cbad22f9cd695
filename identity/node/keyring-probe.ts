/**
 * A program of its own: writes a random value into the credential store, reads it back and deletes it, and prints what
 * came of it. Only this tells a store that works from one that is locked, which answers a read with "nothing there". In
 * a child process because a store that waits for its owner blocks whoever asked it.
 */
import { randomBytes } from 'node:crypto';
import { openEntry } from './keyring-entry.ts';

async function probe(): Promise<'works' | 'absent' | 'locked'> {
  const entry = await openEntry(`probe.${randomBytes(8).toString('hex')}`).catch(() => undefined);
  if (entry === undefined) return 'absent';
  const value = randomBytes(16).toString('hex');
  try {
    await entry.setPassword(value);
    const found = await entry.getPassword();
    const isDeleted = await entry.deletePassword();
    return found === value && isDeleted ? 'works' : 'locked';
  } catch {
    return 'locked';
  }
}

process.stdout.write(await probe());
