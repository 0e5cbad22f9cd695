/** Makes a device out of an invite, or tells the device that used it what it was told before. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { equalBytes } from '../../channel/bytes.ts';
import { PROTOCOL_VERSION } from '../../channel/envelope.ts';
import type { PublicKey } from '../../channel/keys.ts';
import { asPsk, KEY_BYTES } from '../../channel/keys.ts';
import { isLabel, MAX_LABEL_CHARACTERS } from '../access-claims.ts';
import { encodePairingGrant, type DeviceDescription } from '../pairing.ts';
import type { ColumnCipher } from '../sealed-column.ts';
import type { AccessKeyRegistry } from './access-key-registry.ts';
import type { DeviceRegistry, DeviceRegistryOptions, Redemption, RedemptionWish } from './device-registry.ts';
import { pskPlace, recordOf, type DeviceTable } from './device-table.ts';
import { placeOf, type InviteRow, type InviteTable } from './invite-table.ts';

const DEVICE_ID_BYTES = 8;
const BEARER_MARK = ' (bearer)';

interface RedemptionOptions extends DeviceRegistryOptions {
  readonly devices: DeviceTable;
  readonly invites: InviteTable;
  readonly cipher: ColumnCipher;
  readonly nowS: () => number;
}

export function createRedemption(options: RedemptionOptions): Pick<DeviceRegistry, 'redeem' | 'foresee'> {
  const { database, keys, invites, nowS } = options;
  const redeem = database.transaction((wish: RedemptionWish) => {
    const invite = invites.find(wish.inviteId);
    const foreseen = foresee(invite, wish.deviceKey, nowS());
    if (invite === undefined || foreseen === 'over') return { redemption: OVER, replaced: [] };
    if (foreseen === 'used') return { redemption: USED, replaced: [] };
    if (foreseen === 'repeated') return { redemption: repeat(invite, options), replaced: [] };
    // Two devices with one static key can't be told apart: the new pairing is the one that counts.
    const replaced = revokeBefore(wish.deviceKey, options);
    return { redemption: pair(wish, invite, options), replaced };
  });
  return {
    redeem(wish) {
      requireSound(wish.description);
      const { redemption, replaced } = redeem.immediate(wish);
      if (replaced.length > 0) keys.endUnder(replaced).catch(options.onError);
      return redemption;
    },
    foresee: (inviteId, deviceKey) => foresee(invites.find(inviteId), deviceKey, nowS()),
  };
}

const OVER: Redemption = { result: 'over' };
const USED: Redemption = { result: 'used' };

function foresee(
  invite: InviteRow | undefined,
  deviceKey: PublicKey,
  atS: number,
): ReturnType<DeviceRegistry['foresee']> {
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

/** @returns the keys that count no more */
function revokeBefore(deviceKey: PublicKey, { devices, keys, nowS }: RedemptionOptions): readonly string[] {
  const before = devices.findCounting(deviceKey, nowS());
  return before === undefined ? [] : keys.strike([before.kid]);
}

function pair(wish: RedemptionWish, invite: InviteRow, options: RedemptionOptions): Redemption {
  const { devices, invites, cipher, record, randomBytes } = options;
  const { deviceKey, description, gateway } = wish;
  const deviceId = bytesToHex(randomBytes(DEVICE_ID_BYTES));
  const psk = asPsk(randomBytes(KEY_BYTES));
  const { grant, bearer } = makeKeys(wish, invite, options.keys);
  devices.insert({
    id: deviceId,
    staticKey: deviceKey,
    kid: grant.key.kid,
    bearerKid: bearer?.key.kid ?? null,
    name: description.name,
    platform: description.platform,
    model: description.model ?? null,
    protocolVersion: PROTOCOL_VERSION,
    pairedAtS: options.nowS(),
    psk: cipher.seal(pskPlace(deviceId), psk),
  });
  const answer = encodePairingGrant({
    deviceId,
    psk,
    grant: grant.token,
    ...(bearer === undefined ? {} : { bearerKey: bearer.token }),
    ...gateway,
  });
  const sealed = cipher.seal(placeOf(invite.id, 'answer'), answer);
  invites.use({ id: invite.id, usedBy: deviceKey, deviceId, answer: sealed });
  record({ kind: 'device_paired', deviceId, name: description.name, scope: grant.key.scope });
  const device = devices.find(deviceId);
  if (device === undefined) throw new Error('the device is not there that was just written');
  return { result: 'paired', answer, device: recordOf(device) };
}

type MadeKey = ReturnType<AccessKeyRegistry['create']>;

function makeKeys(
  { deviceKey, description: { name } }: RedemptionWish,
  { agentIndex, withBearerKey }: InviteRow,
  keys: Pick<AccessKeyRegistry, 'create'>,
): { readonly grant: MadeKey; readonly bearer: MadeKey | undefined } {
  const scope = { agentIndex: agentIndex ?? undefined, lifetimeS: null };
  const grant = keys.create({ ...scope, device: deviceKey, label: name });
  const bearer = withBearerKey === 1 ? keys.create({ ...scope, label: bearerLabel(name) }) : undefined;
  return { grant, bearer };
}

function bearerLabel(name: string): string {
  const room = MAX_LABEL_CHARACTERS - BEARER_MARK.length;
  return Array.from(name).slice(0, room).join('') + BEARER_MARK;
}

function requireSound({ name, platform, model }: DeviceDescription): void {
  const texts = [name, platform, ...(model === undefined ? [] : [model])];
  if (!texts.every(isLabel)) throw new RangeError('no device can describe itself like this');
}
