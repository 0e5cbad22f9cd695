/** What is kept of invites: never the secret, and what is derived from it sealed, for as long as it is good for anything. */
import type { ColumnPlace } from '../sealed-column.ts';
import { migrate, type Database } from '../../storage/database.ts';

export interface InviteRow {
  /** `inviteId` in hexadecimal. */
  readonly id: string;
  readonly agentIndex: number | null;
  readonly needsApproval: 0 | 1;
  readonly withBearerKey: 0 | 1;
  /** All times in seconds since 1970. */
  readonly createdAtS: number;
  readonly expiresAtS: number;
  /** By its owner, or with the device that used it. */
  readonly closedAtS: number | null;
  /** CS of the device that used it. */
  readonly usedBy: Uint8Array | null;
  readonly deviceId: string | null;
  /** psk0 of the pairing handshake, sealed. */
  readonly psk: Uint8Array | null;
  /** What the device was told, sealed, so that it can ask again. */
  readonly answer: Uint8Array | null;
  /** How many devices had been paired, ever, when it was made: it takes the place of none that came after it. */
  readonly devicesBefore: number;
  /** For each relay that the invite can be used through: rid 15 ‖ tag 16. */
  readonly relayTags: Uint8Array;
}

type NewInvite = Omit<InviteRow, 'closedAtS' | 'usedBy' | 'deviceId' | 'answer'>;
type InviteUse = Pick<InviteRow, 'id' | 'usedBy' | 'deviceId' | 'answer'>;

const MIGRATIONS = [
  `CREATE TABLE invites (
     id TEXT PRIMARY KEY,
     agent_index INTEGER,
     needs_approval INTEGER NOT NULL,
     with_bearer_key INTEGER NOT NULL,
     created_at_s INTEGER NOT NULL,
     expires_at_s INTEGER NOT NULL,
     closed_at_s INTEGER,
     used_by BLOB,
     device_id TEXT,
     psk BLOB,
     answer BLOB
   ) STRICT;
   CREATE INDEX invites_by_device ON invites (device_id);`,
  `ALTER TABLE invites ADD COLUMN relay_tags BLOB NOT NULL DEFAULT x'';`,
  `ALTER TABLE invites ADD COLUMN devices_before INTEGER NOT NULL DEFAULT 0;`,
];

const COLUMNS = `id, agent_index AS agentIndex, needs_approval AS needsApproval, with_bearer_key AS withBearerKey,
  created_at_s AS createdAtS, expires_at_s AS expiresAtS, closed_at_s AS closedAtS, used_by AS usedBy,
  device_id AS deviceId, psk, answer, relay_tags AS relayTags, devices_before AS devicesBefore`;

/** Closed is for good, and leaves nothing to open. */
const CLOSED = 'closed_at_s = ?, psk = NULL, answer = NULL';

export interface InviteTable {
  insert(invite: NewInvite): void;
  find(id: string): InviteRow | undefined;
  /** Newest first. */
  list(): readonly InviteRow[];
  countOpen(atS: number): number;
  use(use: InviteUse): void;
  /** @returns false where it was not open */
  close(id: string, atS: number): boolean;
  /** Whatever this device was paired with. */
  closeOfDevice(deviceId: string, atS: number): void;
  /** Erases the secrets of what expired by `atS`, and the rows of what expired by `forgetS`. */
  prune(atS: number, forgetS: number): void;
}

export function createInviteTable(database: Database): InviteTable {
  migrate(database, 'invites', MIGRATIONS);
  const insert = database.prepare<[NewInvite]>(
    `INSERT INTO invites VALUES (@id, @agentIndex, @needsApproval, @withBearerKey, @createdAtS, @expiresAtS,
       NULL, NULL, NULL, @psk, NULL, @relayTags, @devicesBefore)`,
  );
  const find = database.prepare<[string], InviteRow>(`SELECT ${COLUMNS} FROM invites WHERE id = ?`);
  const list = database.prepare<[], InviteRow>(`SELECT ${COLUMNS} FROM invites ORDER BY created_at_s DESC, rowid DESC`);
  const isOpen = 'closed_at_s IS NULL AND used_by IS NULL AND expires_at_s > ?';
  const countOpen = database.prepare<[number], number>(`SELECT count(*) FROM invites WHERE ${isOpen}`).pluck();
  const use = database.prepare<[InviteUse]>(
    'UPDATE invites SET used_by = @usedBy, device_id = @deviceId, answer = @answer WHERE id = @id',
  );
  const close = database.prepare<[number, string, number]>(`UPDATE invites SET ${CLOSED} WHERE id = ? AND ${isOpen}`);
  const closeOfDevice = database.prepare<[number, string]>(`UPDATE invites SET ${CLOSED} WHERE device_id = ?`);
  const erase = database.prepare<[number]>(
    'UPDATE invites SET psk = NULL, answer = NULL WHERE expires_at_s <= ? AND psk IS NOT NULL',
  );
  const forget = database.prepare<[number]>('DELETE FROM invites WHERE expires_at_s <= ?');
  return {
    insert: (invite) => void insert.run(invite),
    find: (id) => find.get(id),
    list: () => list.all(),
    countOpen: (atS) => countOpen.get(atS) ?? 0,
    use: (made) => void use.run(made),
    close: (id, atS) => close.run(atS, id, atS).changes > 0,
    closeOfDevice: (deviceId, atS) => void closeOfDevice.run(atS, deviceId),
    prune: (atS, forgetS) => {
      erase.run(atS);
      forget.run(forgetS);
    },
  };
}

/** Where a secret of an invite is sealed. */
export function placeOf(id: string, column: 'psk' | 'answer'): ColumnPlace {
  return { table: 'invites', column, row: id };
}
