/**
 * `identity.json`: what the folder remembers of its identity, none of it secret. Which store the secrets were put in, so
 * that it never silently becomes another; which ones were, so that one that is gone is an error and not made anew; and
 * the master key's address, so that another key is not taken for it.
 */
import { join } from 'node:path';
import * as z from 'zod';
import { findAddress, type Address } from '../address.ts';
import { readIfThere } from './read-if-there.ts';
import { IdentityError, type WriteFile } from './secret-store.ts';

const recordSchema = z.strictObject({
  version: z.literal(1),
  store: z.enum(['keyring', 'vault']),
  /** Absent until the identity is complete. */
  address: z
    .string()
    .transform((text): Address | undefined => findAddress(text))
    .refine((address) => address !== undefined)
    .optional(),
  secrets: z.array(z.string()),
});

export type IdentityRecord = Readonly<z.output<typeof recordSchema>>;

function recordPath(home: string): string {
  return join(home, 'identity.json');
}

/** @returns undefined where none was written. @throws {IdentityError} for one that can't be read */
export async function readIdentityRecord(home: string): Promise<IdentityRecord | undefined> {
  const text = await readIfThere(recordPath(home));
  if (text === undefined) return undefined;
  try {
    return recordSchema.parse(JSON.parse(text));
  } catch (cause) {
    throw new IdentityError(
      'corrupt',
      `${recordPath(home)} is damaged. Put back a copy of it; or move it away, and the secrets that are found in the ` +
        'store are taken up again.',
      { cause },
    );
  }
}

export async function writeIdentityRecord(home: string, record: IdentityRecord, writeFile: WriteFile): Promise<void> {
  await writeFile(recordPath(home), `${JSON.stringify(record, null, 2)}\n`, 0o600);
}
