/** The devices that are paired with this gateway. */
import type { Psk, PublicKey, RoutingId } from '../../channel/keys.ts';
import { asPsk } from '../../channel/keys.ts';
import { nobleCrypto } from '../../channel/noble.ts';
import { deriveRelayTag } from '../../channel/relay-tag.ts';
import { isLabel } from '../access-claims.ts';
import { createColumnCipher } from '../sealed-column.ts';
import type { AccessKeyRegistry } from './access-key-registry.ts';
import {
  createDeviceTable,
  pskPlace,
  recordOf,
  type DeviceRecord,
  type DeviceRow,
  type DeviceTable,
} from './device-table.ts';
import { createInviteTable, type InviteTable } from './invite-table.ts';
import { createDirectPairing, type DeviceEvent, type DevicePairingOptions, type DirectPairing } from './new-device.ts';
import { UNKNOWN_REVOCATION, type Revocation } from './key-revocation.ts';
import type { Identity } from './open-identity.ts';
import { createRedemption, type InviteRedemption } from './redemption.ts';

/** How exactly the time of its last visit is kept: a write for each call would be too many. */
const LAST_SEEN_STEP_S = 60;

export interface DeviceRegistry extends InviteRedemption, DirectPairing {
  /** How many were ever paired. */
  countPairings(): number;
  /** Whether this key was paired after the first `before` pairings, and may be revoked by now. */
  wasPairedSince(deviceKey: PublicKey, before: number): boolean;
  find(id: string): DeviceRecord | undefined;
  /** The device with this static key, if it counts: its grant is neither revoked nor expired. */
  findByKey(deviceKey: PublicKey): DeviceRecord | undefined;
  /** Of a device that counts. */
  findPsk(deviceKey: PublicKey): Psk | undefined;
  /** What opens a relay's way on that day, of all devices that count. @param day see `tagDay` */
  relayTags(routingId: RoutingId, day: number): readonly Uint8Array[];
  /** The device whose grant this is, whether or not it still counts. */
  findByKid(kid: string): DeviceRecord | undefined;
  /** Newest first, the revoked among them. */
  list(): readonly DeviceRecord[];
  /** @returns false for an unknown one. @throws RangeError for a name that is no label */
  rename(id: string, name: string): boolean;
  /** When this resolves, its grant is no longer valid and nothing is in flight under it; see `AccessKeyRegistry.revoke`. */
  revoke(id: string): Promise<Revocation>;
  /** Notes that it was here. Written once a minute at most. */
  touch(device: Pick<DeviceRecord, 'id' | 'lastSeenAtS'>, path: 'lan' | 'relay'): void;
}

export interface DeviceRegistryOptions extends DevicePairingOptions {
  readonly identity: Pick<Identity, 'columnKey'>;
  readonly keys: Pick<AccessKeyRegistry, 'create' | 'revoke' | 'isRefused' | 'markRevoked' | 'endUnder' | 'join'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

/** From here on, a device goes with its grant: `keys.revoke` of the one revokes the other. */
export function createDeviceRegistry(options: DeviceRegistryOptions): DeviceRegistry {
  const { database, keys, now, record } = options;
  const devices = createDeviceTable(database);
  const invites = createInviteTable(database);
  const cipher = createColumnCipher(options.identity.columnKey(), options.randomBytes);
  const crypto = nobleCrypto(options.randomBytes);
  const nowS = (): number => Math.floor(now() / 1000);
  const pskOf = ({ id, psk }: DeviceRow): Psk | undefined =>
    psk === null ? undefined : orUndefined(cipher.open(pskPlace(id), psk), asPsk);
  const findActive = (deviceKey: Uint8Array): DeviceRow | undefined => {
    const device = devices.findActive(deviceKey, nowS());
    return device === undefined || keys.isRefused(device.kid) ? undefined : device;
  };
  const psks = (): readonly Psk[] =>
    devices
      .list()
      .filter((row) => findActive(row.staticKey)?.id === row.id)
      .flatMap((row) => pskOf(row) ?? []);
  keys.join({
    linkedKeys: (kids) => kids.flatMap((kid) => devices.findByKid(kid)?.bearerKid ?? []),
    markRevoked(kids) {
      for (const kid of kids) revokeWithGrant(kid, { devices, invites, atS: nowS(), record });
    },
  });
  /** As it is by now, though the database may not have it yet. */
  const deviceOf = (row: DeviceRow): DeviceRecord =>
    recordOf(keys.isRefused(row.kid) ? { ...row, revokedAtS: row.revokedAtS ?? nowS() } : row);
  return {
    ...createRedemption({ ...options, devices, invites, cipher, nowS }),
    ...createDirectPairing({ ...options, devices, cipher, nowS }),
    countPairings: () => devices.lastOrdinal(),
    wasPairedSince: (deviceKey, before) => devices.lastOrdinalOf(deviceKey) > before,
    find: (id) => orUndefined(devices.find(id), deviceOf),
    findByKey: (deviceKey) => orUndefined(findActive(deviceKey), recordOf),
    findPsk: (deviceKey) => orUndefined(findActive(deviceKey), pskOf),
    relayTags: (routingId, day) => psks().map((psk) => deriveRelayTag(crypto, psk, { routingId, day })),
    findByKid: (kid) => orUndefined(devices.findByKid(kid), deviceOf),
    list: () => devices.list().map(deviceOf),
    rename(id, name) {
      if (!isLabel(name)) throw new RangeError('no device can be called that');
      return devices.rename(id, name);
    },
    async revoke(id) {
      const device = devices.find(id);
      return device === undefined ? UNKNOWN_REVOCATION : keys.revoke(device.kid);
    },
    touch({ id, lastSeenAtS = 0 }, path) {
      if (Math.abs(nowS() - lastSeenAtS) >= LAST_SEEN_STEP_S) noteVisit(() => devices.touch(id, nowS(), path));
    },
  };
}

interface Striking {
  readonly devices: DeviceTable;
  readonly invites: InviteTable;
  readonly atS: number;
  readonly record: (event: DeviceEvent) => void;
}

/** Inside the transaction that revokes the key: nothing is left that could be opened, or asked for again. */
function revokeWithGrant(kid: string, { devices, invites, atS, record }: Striking): void {
  const device = devices.findByKid(kid);
  if (device === undefined) return;
  devices.erasePsk(device.id);
  invites.closeOfDevice(device.id, atS);
  record({ kind: 'device_revoked', deviceId: device.id });
}

/** A disk that is full is no reason to turn a device away. */
function noteVisit(write: () => void): void {
  try {
    write();
  } catch {
    // The next visit tries again.
  }
}

function orUndefined<From, To>(value: From | undefined, map: (value: From) => To): To | undefined {
  return value === undefined ? undefined : map(value);
}
