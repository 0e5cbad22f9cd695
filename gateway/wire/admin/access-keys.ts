/** Access keys as `/admin/keys` and `postern keys --json` show them. Never the key itself, but in the answer that made it. */
import * as z from 'zod';
import { isLabel, MAX_LABEL_CHARACTERS } from '../../../identity/access-claims.ts';
import type { AccessKeyParams } from '../../../identity/node/access-key-registry.ts';
import type { AccessKeyRecord } from '../../../identity/node/access-key-table.ts';
import { agentIndexSchema } from '../../agent-index.ts';
import { isoTimeOf } from '../iso-time.ts';

/** A hundred years; one that is meant to last longer has no end. */
export const MAX_LIFETIME_S = 100 * 365 * 24 * 60 * 60;

export const createKeySchema = z.strictObject({
  agent_index: agentIndexSchema.nullish(),
  label: z
    .string()
    .refine(isLabel, { error: `expected 1 to ${MAX_LABEL_CHARACTERS} characters that can be shown as they are` })
    .nullish(),
  expires_in_seconds: z.int().min(1).max(MAX_LIFETIME_S).nullish(),
});

export type CreateKeyBody = Readonly<z.output<typeof createKeySchema>>;

/** `null` for the end means that there is none; left out, it is the default. */
export function accessKeyParamsOf({ agent_index, label, expires_in_seconds }: CreateKeyBody): AccessKeyParams {
  return { agentIndex: agent_index ?? undefined, label: label ?? undefined, lifetimeS: expires_in_seconds };
}

export const keyResourceSchema = z.object({
  id: z.string(),
  status: z.enum(['active', 'expired', 'revoked']),
  /** `master`, or an agent's address. */
  scope: z.string(),
  agent_index: z.int().nullable(),
  label: z.string().nullable(),
  /** A paired device's own key, which counts only inside its sealed calls. */
  device_bound: z.boolean(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  revoked_at: z.string().nullable(),
  /** To the minute. */
  last_used_at: z.string().nullable(),
});

export type KeyResource = Readonly<z.output<typeof keyResourceSchema>>;

export function encodeKey(key: AccessKeyRecord, nowMs: number): KeyResource {
  return {
    id: key.kid,
    status: statusOf(key, nowMs),
    scope: key.scope,
    agent_index: key.agentIndex ?? null,
    label: key.label ?? null,
    device_bound: key.confirmation !== undefined,
    created_at: isoTimeOf(key.issuedAtS),
    expires_at: key.expiresAtS === undefined ? null : isoTimeOf(key.expiresAtS),
    revoked_at: key.revokedAtS === undefined ? null : isoTimeOf(key.revokedAtS),
    last_used_at: key.lastUsedAtS === undefined ? null : isoTimeOf(key.lastUsedAtS),
  };
}

/** A key that was revoked and has expired since was revoked. */
function statusOf({ revokedAtS, expiresAtS }: AccessKeyRecord, nowMs: number): KeyResource['status'] {
  if (revokedAtS !== undefined) return 'revoked';
  return expiresAtS !== undefined && nowMs >= expiresAtS * 1000 ? 'expired' : 'active';
}
