/** The invites of this gateway: what an owner hands to a device so that it can pair. */
import type { InviteSecret, Psk, PublicKey } from '../../channel/keys.ts';

export interface InviteWish {
  /** The agent that the device will be good for; every one, where none is named. */
  readonly agentIndex?: number | undefined;
  /** Seconds, 60 to 3600; 600 where its owner says nothing. */
  readonly lifetimeS?: number | undefined;
  /** The owner is asked again when a device comes with it. */
  readonly needsApproval?: boolean | undefined;
  /** A plain access key is made beside the device's grant. */
  readonly withBearerKey?: boolean | undefined;
}

export interface InviteRecord {
  /** `inviteId` in hexadecimal. */
  readonly id: string;
  readonly agentIndex: number | undefined;
  readonly needsApproval: boolean;
  readonly withBearerKey: boolean;
  /** All times in seconds since 1970. */
  readonly createdAtS: number;
  readonly expiresAtS: number;
  /** `open` until a device used it; closed by its owner, or with its device's revocation. */
  readonly state: 'open' | 'used' | 'closed' | 'expired';
  /** The device that was paired with it. */
  readonly deviceId: string | undefined;
}

export interface InviteRegistry {
  /** The secret is shown once and kept nowhere. @throws TooManyInvites, RangeError */
  create(wish: InviteWish): { readonly secret: InviteSecret; readonly invite: InviteRecord };
  find(id: string): InviteRecord | undefined;
  /** Newest first. */
  list(): readonly InviteRecord[];
  /** No device can use it from now on. @returns false where none could before */
  close(id: string): boolean;
  /**
   * What the pairing handshake needs, of an invite that is open, or used and not yet expired: the device that used it may
   * ask for its answer again.
   */
  findPsk(inviteId: Uint8Array): Psk | undefined;
  /** The static key that used it. */
  usedBy(id: string): PublicKey | undefined;
}
