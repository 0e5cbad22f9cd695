/** The devices that are paired with this gateway. */
import type { Psk, PublicKey } from '../../channel/keys.ts';
import type { Scope } from '../access-claims.ts';
import type { DeviceDescription, PairingGrant } from '../pairing.ts';

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

/** How the gateway names itself to a device, and where it can be found. */
export type GatewayFacts = Pick<PairingGrant, 'gatewayName' | 'gatewayId' | 'relays' | 'urls'>;

export type Redemption =
  /** The answer is stored: the same key gets the same one until the invite expires. */
  | { readonly result: 'paired'; readonly answer: Uint8Array; readonly device: DeviceRecord }
  | { readonly result: 'repeated'; readonly answer: Uint8Array; readonly device: DeviceRecord }
  /** Another device was there first. */
  | { readonly result: 'used' }
  /** Expired or closed, or its device was revoked. */
  | { readonly result: 'over' };

export interface RedemptionWish {
  /** `inviteId` in hexadecimal. */
  readonly inviteId: string;
  /** CS, which the pairing handshake has proved. */
  readonly deviceKey: PublicKey;
  readonly description: DeviceDescription;
  readonly gateway: GatewayFacts;
}

export interface DeviceRegistry {
  /**
   * Pairs a device: the device, its grant, the used invite, the audit entry and the stored answer are one transaction.
   * Synchronous, so that of two devices at once one wins.
   */
  redeem(wish: RedemptionWish): Redemption;
  /** What `redeem` would say before anything is made; `new` for a device that would be paired. */
  foresee(inviteId: string, deviceKey: PublicKey): 'new' | Exclude<Redemption['result'], 'paired'>;
  find(id: string): DeviceRecord | undefined;
  /** The device with this static key, if it counts: its grant is neither revoked nor expired. */
  findByKey(deviceKey: PublicKey): DeviceRecord | undefined;
  /** Of a device that counts. */
  findPsk(deviceKey: PublicKey): Psk | undefined;
  /** The device whose grant this is, whether or not it still counts. */
  findByKid(kid: string): DeviceRecord | undefined;
  /** Newest first, the revoked among them. */
  list(): readonly DeviceRecord[];
  /** @returns false for an unknown one. @throws RangeError for a name that is no label */
  rename(id: string, name: string): boolean;
  /** When this resolves, its grant counts no more and nothing goes on under it; see `AccessKeyRegistry.revoke`. */
  revoke(id: string): Promise<'revoked' | 'already' | 'unknown'>;
  /** Notes that it was here. Written once a minute at most. */
  touch(id: string, path: 'lan' | 'relay'): void;
}
