/** The invites of this gateway: what an owner hands to a device so that it can pair. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { concatBytes, equalBytes } from '../../channel/bytes.ts';
import { deriveInviteKeys, type InviteKeys } from '../../channel/invite.ts';
import type { InviteSecret, Psk, PublicKey, RoutingId } from '../../channel/keys.ts';
import { asInviteSecret, asPsk, asPublicKey, ID_BYTES, ROUTING_ID_BYTES } from '../../channel/keys.ts';
import { nobleCrypto } from '../../channel/noble.ts';
import { TAG_BYTES } from '../../channel/relay-tag.ts';
import { createColumnCipher, type RandomBytes } from '../sealed-column.ts';
import { signerOf, type Issuers } from './access-key-check.ts';
import type { Database } from '../../storage/database.ts';
import { createDeviceTable } from './device-table.ts';
import { createInviteTable, placeOf, type InviteRow, type InviteTable } from './invite-table.ts';
import type { Identity } from './open-identity.ts';

export const MIN_INVITE_LIFETIME_S = 60;
export const MAX_INVITE_LIFETIME_S = 3600;
const DEFAULT_LIFETIME_S = 600;
/** Each is a door that stands ajar. */
export const MAX_OPEN_INVITES = 8;
/** So long after its end one still sees what became of an invite. */
const REMEMBERED_S = 24 * 60 * 60;

export interface InviteParams {
  /** The agent that the device will be good for; every one, where none is named. */
  readonly agentIndex?: number | undefined;
  /** Seconds, 60 to 3600; 600 where its owner says nothing. */
  readonly lifetimeS?: number | undefined;
  /** The owner is asked again when a device comes with it. */
  readonly needsApproval?: boolean | undefined;
  /** A plain access key is made beside the device's grant. */
  readonly withBearerKey?: boolean | undefined;
  /** Under which this gateway is known at the relays that the invite can be used through. */
  readonly routingIds?: readonly RoutingId[] | undefined;
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
  create(params: InviteParams): { readonly secret: InviteSecret; readonly invite: InviteRecord };
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
  /** What opens this relay's way, for pairing only, of invites that a device may come with. */
  relayTags(routingId: RoutingId): readonly { readonly tag: Uint8Array; readonly expiresAtS: number }[];
  /** The static key that used it. */
  usedBy(id: string): PublicKey | undefined;
}

export class TooManyInvites extends Error {
  override readonly name = 'TooManyInvites';
}

interface RegistryOptions {
  readonly database: Database;
  readonly identity: Issuers & Pick<Identity, 'columnKey'>;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly randomBytes: RandomBytes;
  /** Called when one was made or closed. */
  readonly onChange?: () => void;
}

export function createInviteRegistry(options: RegistryOptions): InviteRegistry {
  const { database, identity, now, randomBytes, onChange = () => {} } = options;
  const table = createInviteTable(database);
  const devices = createDeviceTable(database);
  const cipher = createColumnCipher(identity.columnKey(), randomBytes);
  const crypto = nobleCrypto(randomBytes);
  const nowS = (): number => Math.floor(now() / 1000);
  /** A device may come with it, or come again. */
  const isGood = ({ psk, expiresAtS }: InviteRow): boolean => psk !== null && nowS() < expiresAtS;
  const prune = (): void => table.prune(nowS(), nowS() - REMEMBERED_S);

  const keep = database.transaction((row: NewInvite) => {
    prune();
    if (table.countOpen(nowS()) >= MAX_OPEN_INVITES) {
      throw new TooManyInvites(`${MAX_OPEN_INVITES} invites are open already`);
    }
    table.insert(row);
  });

  return {
    create(params) {
      assertValid(params, identity);
      const secret = asInviteSecret(randomBytes(ID_BYTES));
      const { inviteId, psk, relayTag } = deriveInviteKeys(crypto, secret);
      const id = bytesToHex(inviteId);
      const made = { id, createdAtS: nowS(), psk: cipher.seal(placeOf(id, 'psk'), psk), relayTag };
      const row = rowOf(params, { ...made, devicesBefore: devices.lastOrdinal() });
      keep.immediate(row);
      onChange();
      const invite = recordOf({ ...row, closedAtS: null, usedBy: null, deviceId: null, answer: null }, nowS());
      return { secret, invite };
    },
    find(id) {
      const row = table.find(id);
      return row && recordOf(row, nowS());
    },
    list() {
      prune();
      return table.list().map((row) => recordOf(row, nowS()));
    },
    close(id) {
      const isClosed = table.close(id, nowS());
      if (isClosed) onChange();
      return isClosed;
    },
    relayTags: (routingId) => table.list().flatMap((row) => (isGood(row) ? relayTagsOf(row, routingId) : [])),
    findPsk(inviteId) {
      const row = table.find(bytesToHex(inviteId));
      if (row === undefined || row.psk === null || !isGood(row)) return undefined;
      const psk = cipher.open(placeOf(row.id, 'psk'), row.psk);
      return psk && asPsk(psk);
    },
    usedBy(id) {
      const key = table.find(id)?.usedBy ?? undefined;
      return key && asPublicKey(key);
    },
  };
}

const TAG_ENTRY_BYTES = ROUTING_ID_BYTES + TAG_BYTES;

type NewInvite = Parameters<InviteTable['insert']>[0];

function rowOf(
  { agentIndex, lifetimeS = DEFAULT_LIFETIME_S, needsApproval, withBearerKey, routingIds = [] }: InviteParams,
  { relayTag, ...made }: Pick<NewInvite, 'id' | 'createdAtS' | 'psk' | 'devicesBefore'> & Pick<InviteKeys, 'relayTag'>,
): NewInvite {
  return {
    ...made,
    agentIndex: agentIndex ?? null,
    needsApproval: flag(needsApproval),
    withBearerKey: flag(withBearerKey),
    expiresAtS: made.createdAtS + lifetimeS,
    relayTags: concatBytes(...routingIds.flatMap((rid) => [rid, relayTag(rid)])),
  };
}

function relayTagsOf(
  { relayTags, expiresAtS }: InviteRow,
  routingId: RoutingId,
): readonly { readonly tag: Uint8Array; readonly expiresAtS: number }[] {
  for (let at = 0; at < relayTags.length; at += TAG_ENTRY_BYTES) {
    const entry = relayTags.subarray(at, at + TAG_ENTRY_BYTES);
    if (!equalBytes(entry.subarray(0, ROUTING_ID_BYTES), routingId)) continue;
    return [{ tag: new Uint8Array(entry.subarray(ROUTING_ID_BYTES)), expiresAtS }];
  }
  return [];
}

function assertValid({ agentIndex, lifetimeS = DEFAULT_LIFETIME_S }: InviteParams, identity: Issuers): void {
  const isTime = Number.isInteger(lifetimeS) && lifetimeS >= MIN_INVITE_LIFETIME_S;
  if (!isTime || lifetimeS > MAX_INVITE_LIFETIME_S) {
    throw new RangeError(`an invite lasts ${MIN_INVITE_LIFETIME_S} to ${MAX_INVITE_LIFETIME_S} seconds`);
  }
  // Throws for what is no agent's number.
  signerOf(identity, agentIndex);
}

function flag(isSet: boolean | undefined): 0 | 1 {
  return isSet === true ? 1 : 0;
}

function recordOf(row: InviteRow, atS: number): InviteRecord {
  return {
    id: row.id,
    agentIndex: row.agentIndex ?? undefined,
    needsApproval: row.needsApproval === 1,
    withBearerKey: row.withBearerKey === 1,
    createdAtS: row.createdAtS,
    expiresAtS: row.expiresAtS,
    state: stateOf(row, atS),
    deviceId: row.deviceId ?? undefined,
  };
}

function stateOf({ closedAtS, usedBy, expiresAtS }: InviteRow, atS: number): InviteRecord['state'] {
  if (closedAtS !== null) return 'closed';
  if (usedBy !== null) return 'used';
  return atS >= expiresAtS ? 'expired' : 'open';
}
