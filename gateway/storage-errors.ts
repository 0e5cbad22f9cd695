/** What could not be stored did not happen: the codes, and the status of each. */
import type { DiskFault } from '../storage/disk-fault.ts';

export const storageErrors = {
  storage_full: 507,
  storage_unavailable: 503,
} as const;

type StorageErrorCode = keyof typeof storageErrors;

const MESSAGES: Readonly<Record<StorageErrorCode, string>> = {
  storage_full: 'The disk of the service is full, so this could not be stored. Its owner has to make room.',
  storage_unavailable: "The service can't reach what it has stored at the moment. Its log says more.",
};

export function storageError(fault: DiskFault): { readonly code: StorageErrorCode; readonly message: string } {
  const code = fault === 'full' ? 'storage_full' : 'storage_unavailable';
  return { code, message: MESSAGES[code] };
}
