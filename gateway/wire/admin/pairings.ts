/** Invites and devices as `/admin/invites`, `/admin/devices` and the command line show them. */
import * as z from 'zod';
import { isLabel, MAX_LABEL_CHARACTERS } from '../../../identity/access-claims.ts';
import type { DeviceRecord } from '../../../identity/node/device-table.ts';
import {
  MAX_INVITE_LIFETIME_S,
  MIN_INVITE_LIFETIME_S,
  type InviteRecord,
  type InviteParams,
} from '../../../identity/node/invite-registry.ts';
import { agentIndexSchema } from '../../agent-index.ts';
import { relayResourceSchema } from '../../relays.ts';
import { isoTimeOf } from '../iso-time.ts';

export const createInviteSchema = z.strictObject({
  agent_index: agentIndexSchema.nullish(),
  expires_in_seconds: z.int().min(MIN_INVITE_LIFETIME_S).max(MAX_INVITE_LIFETIME_S).nullish(),
  needs_approval: z.boolean().nullish(),
  /** A plain access key is made beside the device's grant. */
  bearer: z.boolean().nullish(),
});

export type CreateInviteBody = Readonly<z.output<typeof createInviteSchema>>;

export function inviteParamsOf(body: CreateInviteBody): InviteParams {
  return {
    agentIndex: body.agent_index ?? undefined,
    lifetimeS: body.expires_in_seconds ?? undefined,
    needsApproval: body.needs_approval ?? undefined,
    withBearerKey: body.bearer ?? undefined,
  };
}

export const renameDeviceSchema = z.strictObject({
  name: z
    .string()
    .refine(isLabel, { error: `expected 1 to ${MAX_LABEL_CHARACTERS} characters that can be shown as they are` }),
});

export const deviceResourceSchema = z.object({
  id: z.string(),
  status: z.enum(['active', 'revoked']),
  name: z.string(),
  platform: z.string(),
  model: z.string().nullable(),
  /** `master`, or an agent's address. */
  scope: z.string(),
  agent_index: z.int().nullable(),
  /** The access key that is its grant. */
  key_id: z.string(),
  paired_at: z.string(),
  /** To the minute. */
  last_seen_at: z.string().nullable(),
  last_path: z.enum(['lan', 'relay']).nullable(),
  revoked_at: z.string().nullable(),
});

export type DeviceResource = Readonly<z.output<typeof deviceResourceSchema>>;

export const inviteResourceSchema = z.object({
  id: z.string(),
  state: z.enum(['open', 'used', 'closed', 'expired']),
  agent_index: z.int().nullable(),
  needs_approval: z.boolean(),
  bearer: z.boolean(),
  created_at: z.string(),
  expires_at: z.string(),
  /** What was paired with it. */
  device_id: z.string().nullable(),
});

export type InviteResource = Readonly<z.output<typeof inviteResourceSchema>>;

/** Of one invite. */
export const inviteStateSchema = inviteResourceSchema.extend({ device: deviceResourceSchema.nullable() });
export type InviteState = Readonly<z.output<typeof inviteStateSchema>>;

/** The answer that made it: the only place where what a device needs is ever shown. */
export const madeInviteSchema = inviteResourceSchema.extend({
  /** `SVC:…`, for a QR code or to paste. */
  code: z.string(),
  link: z.string().optional(),
  gateway_id: z.string(),
  gateway_name: z.string(),
  urls: z.array(z.string()),
  /** Through which it can be used from anywhere. */
  relay: relayResourceSchema.nullable(),
});
export type MadeInvite = Readonly<z.output<typeof madeInviteSchema>>;

export function encodeInvite(invite: InviteRecord): InviteResource {
  return {
    id: invite.id,
    state: invite.state,
    agent_index: invite.agentIndex ?? null,
    needs_approval: invite.needsApproval,
    bearer: invite.withBearerKey,
    created_at: isoTimeOf(invite.createdAtS),
    expires_at: isoTimeOf(invite.expiresAtS),
    device_id: invite.deviceId ?? null,
  };
}

export function encodeDevice(device: DeviceRecord): DeviceResource {
  return {
    id: device.id,
    status: device.revokedAtS === undefined ? 'active' : 'revoked',
    name: device.name,
    platform: device.platform,
    model: device.model ?? null,
    scope: device.scope,
    agent_index: device.agentIndex ?? null,
    key_id: device.kid,
    paired_at: isoTimeOf(device.pairedAtS),
    last_seen_at: device.lastSeenAtS === undefined ? null : isoTimeOf(device.lastSeenAtS),
    last_path: device.lastPath ?? null,
    revoked_at: device.revokedAtS === undefined ? null : isoTimeOf(device.revokedAtS),
  };
}
