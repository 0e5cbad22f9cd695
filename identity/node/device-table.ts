/**
 * What is kept of paired devices. Whether one still counts stands in the row of its grant, which is read with its own:
 * no second mark could disagree with that one.
 */
import { asPublicKey, type PublicKey } from '../../channel/keys.ts';
import type { Scope } from '../access-claims.ts';
import type { ColumnPlace } from '../sealed-column.ts';
import { migrate, type Database } from '../../storage/database.ts';
import { scopeOfRow } from './access-key-table.ts';

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

export interface DeviceRow {
  readonly id: string;
  /** 1 for the first that was ever paired. */
  readonly ordinal: number;
  /** CS. */
  readonly staticKey: Uint8Array;
  /** Of its grant. */
  readonly kid: string;
  /** Of the plain key that was made beside it. */
  readonly bearerKid: string | null;
  readonly name: string;
  readonly platform: string;
  readonly model: string | null;
  readonly protocolVersion: number;
  /** All times in seconds since 1970. */
  readonly pairedAtS: number;
  readonly lastSeenAtS: number | null;
  readonly lastPath: 'lan' | 'relay' | null;
  /** psk2 of its handshakes, sealed; gone with its grant. */
  readonly psk: Uint8Array | null;
  /** From its grant. */
  readonly scope: string;
  readonly agentIndex: number | null;
  readonly revokedAtS: number | null;
}

type NewDevice = Omit<DeviceRow, 'ordinal' | 'lastSeenAtS' | 'lastPath' | 'scope' | 'agentIndex' | 'revokedAtS'>;

const MIGRATIONS = [
  `CREATE TABLE devices (
     id TEXT PRIMARY KEY,
     static_key BLOB NOT NULL,
     kid TEXT NOT NULL UNIQUE REFERENCES access_keys (kid),
     bearer_kid TEXT REFERENCES access_keys (kid),
     name TEXT NOT NULL,
     platform TEXT NOT NULL,
     model TEXT,
     protocol_version INTEGER NOT NULL,
     paired_at_s INTEGER NOT NULL,
     last_seen_at_s INTEGER,
     last_path TEXT,
     psk BLOB
   ) STRICT;
   CREATE INDEX devices_by_static_key ON devices (static_key);`,
];

const SELECT = `SELECT d.id, d.rowid AS ordinal, d.static_key AS staticKey, d.kid, d.bearer_kid AS bearerKid, d.name, d.platform, d.model,
    d.protocol_version AS protocolVersion, d.paired_at_s AS pairedAtS, d.last_seen_at_s AS lastSeenAtS,
    d.last_path AS lastPath, d.psk, k.scope, k.agent_index AS agentIndex, k.revoked_at_s AS revokedAtS
  FROM devices d JOIN access_keys k ON k.kid = d.kid`;

export interface DeviceTable {
  insert(device: NewDevice): void;
  find(id: string): DeviceRow | undefined;
  findByKid(kid: string): DeviceRow | undefined;
  /** The one with this static key whose grant counts at this time. */
  findActive(staticKey: Uint8Array, atS: number): DeviceRow | undefined;
  /** Newest first. */
  list(): readonly DeviceRow[];
  /** The ordinal of the newest; 0 where there is none. No row is ever deleted. */
  lastOrdinal(): number;
  /** The same of those with this static key, whether or not they still count. */
  lastOrdinalOf(staticKey: Uint8Array): number;
  rename(id: string, name: string): boolean;
  touch(id: string, atS: number, path: 'lan' | 'relay'): void;
  erasePsk(id: string): void;
}

/** The tables of the access keys have to be there. */
export function createDeviceTable(database: Database): DeviceTable {
  migrate(database, 'devices', MIGRATIONS);
  const insert = database.prepare<[NewDevice]>(
    `INSERT INTO devices VALUES (@id, @staticKey, @kid, @bearerKid, @name, @platform, @model, @protocolVersion,
       @pairedAtS, NULL, NULL, @psk)`,
  );
  const find = database.prepare<[string], DeviceRow>(`${SELECT} WHERE d.id = ?`);
  const findByKid = database.prepare<[string], DeviceRow>(`${SELECT} WHERE d.kid = ?`);
  // Asked for with each sealed call. SQLite plans a join anew for each value that it is compared with, which takes ten
  // times as long as the rest; what a subquery gives it does not know beforehand.
  const findActive = database.prepare<[Uint8Array, number], DeviceRow>(
    `${SELECT} WHERE d.static_key = (SELECT ?) AND k.revoked_at_s IS NULL
       AND (k.expires_at_s IS NULL OR k.expires_at_s > (SELECT ?))`,
  );
  const list = database.prepare<[], DeviceRow>(`${SELECT} ORDER BY d.paired_at_s DESC, d.rowid DESC`);
  const LAST = 'SELECT coalesce(max(rowid), 0) FROM devices';
  const lastOrdinal = database.prepare<[], number>(LAST).pluck();
  const lastOrdinalOf = database.prepare<[Uint8Array], number>(`${LAST} WHERE static_key = ?`).pluck();
  const rename = database.prepare<[string, string]>('UPDATE devices SET name = ? WHERE id = ?');
  const touch = database.prepare<[number, string, string]>(
    'UPDATE devices SET last_seen_at_s = ?, last_path = ? WHERE id = ?',
  );
  const erasePsk = database.prepare<[string]>('UPDATE devices SET psk = NULL WHERE id = ?');
  return {
    insert: (device) => void insert.run(device),
    find: (id) => find.get(id),
    findByKid: (kid) => findByKid.get(kid),
    findActive: (staticKey, atS) => findActive.get(staticKey, atS),
    list: () => list.all(),
    lastOrdinal: () => lastOrdinal.get() ?? 0,
    lastOrdinalOf: (staticKey) => lastOrdinalOf.get(staticKey) ?? 0,
    rename: (id, name) => rename.run(name, id).changes > 0,
    touch: (id, atS, path) => void touch.run(atS, path, id),
    erasePsk: (id) => void erasePsk.run(id),
  };
}

/** Where a device's psk is sealed. */
export function pskPlace(deviceId: string): ColumnPlace {
  return { table: 'devices', column: 'psk', row: deviceId };
}

export function recordOf(row: DeviceRow): DeviceRecord {
  return {
    id: row.id,
    staticKey: asPublicKey(row.staticKey),
    kid: row.kid,
    scope: scopeOfRow(row.scope),
    agentIndex: row.agentIndex ?? undefined,
    name: row.name,
    platform: row.platform,
    model: row.model ?? undefined,
    protocolVersion: row.protocolVersion,
    pairedAtS: row.pairedAtS,
    lastSeenAtS: row.lastSeenAtS ?? undefined,
    lastPath: row.lastPath ?? undefined,
    revokedAtS: row.revokedAtS ?? undefined,
  };
}
