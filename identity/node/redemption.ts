/** Makes a device out of an invite, or tells the device that used it what it was told before. */
import { equalBytes } from '../../channel/bytes.ts';
import type { PublicKey } from '../../channel/keys.ts';
import { recordOf } from './device-table.ts';
import { placeOf, type InviteRow, type InviteTable } from './invite-table.ts';
import {
  addDevice,
  endReplaced,
  assertValid,
  type DeviceParams,
  type NewDeviceOptions,
  type NewPairing,
} from './new-device.ts';

export type Redemption =
  /** The answer is stored: the same key gets the same one until the invite expires. */
  | ({ readonly result: 'paired' } & NewPairing)
  | ({ readonly result: 'repeated' } & NewPairing)
  /** Another device was there first. */
  | { readonly result: 'used' }
  /** Expired or closed, its device was revoked, or the same key was paired after the invite was made. */
  | { readonly result: 'over' };

export interface RedemptionParams extends DeviceParams {
  /** `inviteId` in hexadecimal. */
  readonly inviteId: string;
}

type Preview = 'new' | Exclude<Redemption['result'], 'paired'>;

export interface InviteRedemption {
  /**
   * Pairs a device: the device, its grant, the used invite, the audit entry and the stored answer are one transaction.
   * Synchronous, so that of two devices at once one wins.
   */
  redeem(params: RedemptionParams): Redemption;
  /** What `redeem` would say before anything is made; `new` for a device that would be paired. */
  preview(inviteId: string, deviceKey: PublicKey): Preview;
}

interface RedemptionOptions extends NewDeviceOptions {
  readonly invites: InviteTable;
}

export function createRedemption(options: RedemptionOptions): InviteRedemption {
  const { database, devices, invites, nowS } = options;
  const previewFor = (invite: InviteRow | undefined, deviceKey: PublicKey): Preview => {
    const previewed = preview(invite, deviceKey, nowS());
    if (invite === undefined || previewed !== 'new') return previewed;
    // A confirmation that somebody held back must neither replace what came after it, nor bring back what was revoked.
    return devices.lastOrdinalOf(deviceKey) > invite.devicesBefore ? 'over' : previewed;
  };
  const redeem = database.transaction((params: RedemptionParams) => {
    const invite = invites.find(params.inviteId);
    const previewed = previewFor(invite, params.deviceKey);
    if (invite === undefined || previewed === 'over') return { redemption: OVER, replaced: [] };
    if (previewed === 'used') return { redemption: USED, replaced: [] };
    if (previewed === 'repeated') return { redemption: repeat(invite, options), replaced: [] };
    const { replaced, ...paired } = useInvite(params, invite, options);
    return { redemption: { result: 'paired', ...paired } as const, replaced };
  });
  return {
    redeem(params) {
      assertValid(params.description);
      const { redemption, replaced } = redeem.immediate(params);
      endReplaced(replaced, options);
      return redemption;
    },
    preview: (inviteId, deviceKey) => previewFor(invites.find(inviteId), deviceKey),
  };
}

const OVER: Redemption = { result: 'over' };
const USED: Redemption = { result: 'used' };

function preview(invite: InviteRow | undefined, deviceKey: PublicKey, atS: number): Preview {
  if (invite === undefined || invite.closedAtS !== null || atS >= invite.expiresAtS) return 'over';
  if (invite.usedBy === null) return 'new';
  return equalBytes(invite.usedBy, deviceKey) ? 'repeated' : 'used';
}

function repeat({ id, answer, deviceId }: InviteRow, { devices, cipher }: RedemptionOptions): Redemption {
  const opened = answer === null ? undefined : cipher.open(placeOf(id, 'answer'), answer);
  const device = deviceId === null ? undefined : devices.find(deviceId);
  // Sealed under a key that is not this folder's any more.
  if (opened === undefined || device === undefined) return OVER;
  return { result: 'repeated', answer: opened, device: recordOf(device) };
}

function useInvite(
  params: RedemptionParams,
  { id, agentIndex, withBearerKey }: InviteRow,
  options: RedemptionOptions,
): ReturnType<typeof addDevice> {
  const { cipher, invites } = options;
  const terms = { agentIndex: agentIndex ?? undefined, withBearerKey: withBearerKey === 1 };
  const added = addDevice(params, terms, options);
  const answer = cipher.seal(placeOf(id, 'answer'), added.answer);
  invites.use({ id, usedBy: params.deviceKey, deviceId: added.device.id, answer });
  return added;
}
