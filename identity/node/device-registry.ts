/** The devices that are paired with this gateway. */
import type { Psk, PublicKey, RoutingId } from '../../channel/keys.ts';
import { asPsk } from '../../channel/keys.ts';
import { nobleCrypto } from '../../channel/noble.ts';
import { deriveRelayTag } from '../../channel/relay-tag.ts';
import { isLabel, type Scope } from '../access-claims.ts';
import type { DeviceDescription, GatewayFacts } from '../pairing.ts';
import { createColumnCipher, type RandomBytes } from '../sealed-column.ts';
import type { AccessKeyRegistry } from './access-key-registry.ts';
import type { Database } from '../../storage/database.ts';
import { createDeviceTable, pskPlace, recordOf, type DeviceRow, type DeviceTable } from './device-table.ts';
import { createInviteTable, type InviteTable } from './invite-table.ts';
import { createAdmission } from './new-device.ts';
import { UNKNOWN_REVOCATION, type Revocation } from './key-revocation.ts';
import type { Identity } from './open-identity.ts';
import { createRedemption } from './redemption.ts';

/** How exactly the time of its last visit is kept: a write for each call would be too many. */
const LAST_SEEN_STEP_S = 60;

export interface DeviceRecord {
  readonly id: string;
  /** CS. */
  readonly staticKey: PublicKey;
  /** Of the access key that is its grant: the device counts for as long as that key does. */
  readonly kid: string;
  readonly scope: Scope;
  readonly agentIndex: number | undefined;
  readonly name: string;
  readonly platform: string;
  readonly model: string | undefined;
  /** Of the pairing; a lower one is refused for this device. */
  readonly protocolVersion: number;
  /** All times in seconds since 1970. */
  readonly pairedAtS: number;
  /** To the minute. */
  readonly lastSeenAtS: number | undefined;
  readonly lastPath: 'lan' | 'relay' | undefined;
  readonly revokedAtS: number | undefined;
}

export interface Admission {
  /** For the device: an encoded `PairingGrant`. */
  readonly answer: Uint8Array;
  readonly device: DeviceRecord;
}

export type Redemption =
  /** The answer is stored: the same key gets the same one until the invite expires. */
  | ({ readonly result: 'paired' } & Admission)
  | ({ readonly result: 'repeated' } & Admission)
  /** Another device was there first. */
  | { readonly result: 'used' }
  /** Expired or closed, its device was revoked, or the same key was paired after the invite was made. */
  | { readonly result: 'over' };

export interface DeviceParams {
  /** CS, which the pairing handshake has proved. */
  readonly deviceKey: PublicKey;
  readonly description: DeviceDescription;
  readonly gateway: GatewayFacts;
}

export interface RedemptionParams extends DeviceParams {
  /** `inviteId` in hexadecimal. */
  readonly inviteId: string;
}

export interface DeviceRegistry {
  /**
   * Pairs a device: the device, its grant, the used invite, the audit entry and the stored answer are one transaction.
   * Synchronous, so that of two devices at once one wins.
   */
  redeem(params: RedemptionParams): Redemption;
  /** What `redeem` would say before anything is made; `new` for a device that would be paired. */
  preview(inviteId: string, deviceKey: PublicKey): 'new' | Exclude<Redemption['result'], 'paired'>;
  /**
   * Pairs a device without an invite, which another way of proving itself stands for: the device, its grant and the audit
   * entry are one transaction. What it is told is not kept.
   * @param agentIndex the agent that it will be good for; every one, where none is named
   */
  admit(params: DeviceParams, agentIndex: number | undefined): Admission;
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

/** What happened to a device, for the audit log. */
export type DeviceEvent =
  | { readonly kind: 'device_paired'; readonly deviceId: string; readonly name: string; readonly scope: Scope }
  | { readonly kind: 'device_revoked'; readonly deviceId: string };

export interface DeviceRegistryOptions {
  readonly database: Database;
  readonly identity: Pick<Identity, 'columnKey'>;
  readonly keys: Pick<AccessKeyRegistry, 'create' | 'revoke' | 'isRefused' | 'markRevoked' | 'endUnder' | 'join'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly randomBytes: RandomBytes;
  /** Called inside the transaction of what it tells; where it throws, nothing happened. */
  readonly record: (event: DeviceEvent) => void;
  /** What went on under the grant that a new pairing replaced did not end as it should. */
  readonly onError: (error: unknown) => void;
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
    ...createAdmission({ ...options, devices, cipher, nowS }),
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
