/**
 * What the audit log can tell: a closed list of kinds, each with its fields and no others. There is no field for a
 * secret or a prompt, and none of free length.
 */
import * as z from 'zod';

/** An id, an address, a reason: words of ours. */
const name = z.string().min(1).max(100);
/** What an owner or a device calls something. */
const label = z.string().max(400);
const count = z.int().min(0);

const auditEntrySchema = z.discriminatedUnion('kind', [
  /** `scope` is `master` or an agent's address. */
  z.strictObject({
    kind: z.literal('key_created'),
    kid: name,
    scope: name,
    label: label.nullable(),
    expiresAtS: count.nullable(),
    isDeviceGrant: z.boolean(),
  }),
  z.strictObject({ kind: z.literal('key_revoked'), kid: name }),
  z.strictObject({ kind: z.literal('device_paired'), deviceId: name, name: label, scope: name }),
  z.strictObject({ kind: z.literal('device_revoked'), deviceId: name }),
  z.strictObject({ kind: z.literal('approval_settled'), id: name, approvalKind: name, outcome: name }),
  /** Never the value. */
  z.strictObject({ kind: z.literal('setting_changed'), name }),
  z.strictObject({ kind: z.literal('identity_restored'), address: name }),
  /** How often callers were turned away for this reason, in about a minute. */
  z.strictObject({ kind: z.literal('refused'), reason: name, count }),
  /** Written by the log itself: what stood before this entry was not what it had sealed. */
  z.strictObject({ kind: z.literal('damage_found') }),
]);

export type AuditEntry = Readonly<z.output<typeof auditEntrySchema>>;

/** @throws for an entry that is not in the list, or has other fields; that is a fault of ours */
export function encodeAuditEntry(entry: AuditEntry): string {
  return JSON.stringify(auditEntrySchema.parse(entry));
}

/** `undefined` for text that `encodeAuditEntry` does not write. */
export function findAuditEntry(text: string): AuditEntry | undefined {
  try {
    return auditEntrySchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
