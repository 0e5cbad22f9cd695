/**
 * One entry of the operating system's credential store. On Linux the library falls back to the kernel's keyring, which
 * forgets at a reboot, where it finds no Secret Service; so the store is named, and where it is missing that is said.
 */
import type { AsyncEntry } from '@napi-rs/keyring';

export const KEYRING_SERVICE = 'postern';

/** @throws where there is no such store, or no build of the library for this platform */
export async function openEntry(account: string): Promise<AsyncEntry> {
  const keyring = await import('@napi-rs/keyring');
  return new keyring.AsyncEntry(KEYRING_SERVICE, account, { linux: { store: 'secret-service' } });
}
