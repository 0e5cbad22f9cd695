/** What is kept of access keys: everything about them but the keys themselves. */
import { migrate, type Database } from '../../storage/database.ts';
import type { Scope } from '../access-claims.ts';
import { findAddress, type Address } from '../address.ts';

export interface AccessKeyRecord {
  readonly kid: string;
  readonly scope: Scope;
  readonly issuer: Address;
  /** Of the agent whose key signed it; absent for the master key. */
  readonly agentIndex: number | undefined;
  readonly label: string | undefined;
  /** All times in seconds since 1970. */
  readonly issuedAtS: number;
  readonly expiresAtS: number | undefined;
  /** Of the device whose grant it is; see `confirmationOf`. */
  readonly confirmation: string | undefined;
  readonly revokedAtS: number | undefined;
  /** To the minute. */
  readonly lastUsedAtS: number | undefined;
}

const MIGRATIONS = [
  `CREATE TABLE access_keys (
     kid TEXT PRIMARY KEY,
     scope TEXT NOT NULL,
     issuer TEXT NOT NULL,
     agent_index INTEGER,
     label TEXT,
     issued_at_s INTEGER NOT NULL,
     expires_at_s INTEGER,
     confirmation TEXT,
     revoked_at_s INTEGER,
     last_used_at_s INTEGER
   ) STRICT;`,
];

export interface AccessKeyTable {
  insert(record: AccessKeyRecord): void;
  find(kid: string): AccessKeyRecord | undefined;
  /** What changes of a key; read each time that it is shown. */
  state(kid: string): Pick<AccessKeyRecord, 'revokedAtS' | 'lastUsedAtS'> | undefined;
  /** Newest first. */
  list(): readonly AccessKeyRecord[];
  /** @returns false where the key was revoked already, or never was */
  revoke(kid: string, atS: number): boolean;
  touch(kid: string, atS: number): void;
}

export function createAccessKeyTable(database: Database): AccessKeyTable {
  migrate(database, 'access_keys', MIGRATIONS);
  const insert = database.prepare<[Readonly<Record<string, string | number | null>>]>(
    `INSERT INTO access_keys VALUES (@kid, @scope, @issuer, @agentIndex, @label, @issuedAtS, @expiresAtS,
       @confirmation, NULL, NULL)`,
  );
  const find = database.prepare<[string], Row>('SELECT * FROM access_keys WHERE kid = ?');
  const state = database.prepare<[string], Pick<Row, 'revoked_at_s' | 'last_used_at_s'>>(
    'SELECT revoked_at_s, last_used_at_s FROM access_keys WHERE kid = ?',
  );
  const list = database.prepare<[], Row>('SELECT * FROM access_keys ORDER BY issued_at_s DESC, rowid DESC');
  const revoke = database.prepare<[number, string]>(
    'UPDATE access_keys SET revoked_at_s = ? WHERE kid = ? AND revoked_at_s IS NULL',
  );
  const touch = database.prepare<[number, string]>('UPDATE access_keys SET last_used_at_s = ? WHERE kid = ?');
  return {
    insert({ kid, scope, issuer, agentIndex, label, issuedAtS, expiresAtS, confirmation }) {
      insert.run({
        kid,
        scope,
        issuer,
        agentIndex: agentIndex ?? null,
        label: label ?? null,
        issuedAtS,
        expiresAtS: expiresAtS ?? null,
        confirmation: confirmation ?? null,
      });
    },
    find(kid) {
      const row = find.get(kid);
      return row && recordOf(row);
    },
    state(kid) {
      const row = state.get(kid);
      return row && { revokedAtS: row.revoked_at_s ?? undefined, lastUsedAtS: row.last_used_at_s ?? undefined };
    },
    list: () => list.all().map(recordOf),
    revoke: (kid, atS) => revoke.run(atS, kid).changes > 0,
    touch: (kid, atS) => void touch.run(atS, kid),
  };
}

interface Row {
  readonly kid: string;
  readonly scope: string;
  readonly issuer: string;
  readonly agent_index: number | null;
  readonly label: string | null;
  readonly issued_at_s: number;
  readonly expires_at_s: number | null;
  readonly confirmation: string | null;
  readonly revoked_at_s: number | null;
  readonly last_used_at_s: number | null;
}

function recordOf(row: Row): AccessKeyRecord {
  return {
    kid: row.kid,
    scope: scopeOfRow(row.scope),
    issuer: addressOfRow(row.issuer),
    agentIndex: row.agent_index ?? undefined,
    label: row.label ?? undefined,
    issuedAtS: row.issued_at_s,
    expiresAtS: row.expires_at_s ?? undefined,
    confirmation: row.confirmation ?? undefined,
    revokedAtS: row.revoked_at_s ?? undefined,
    lastUsedAtS: row.last_used_at_s ?? undefined,
  };
}

/** @throws Error for what no key says */
export function scopeOfRow(text: string): Scope {
  return text === 'master' ? 'master' : addressOfRow(text);
}

function addressOfRow(text: string): Address {
  const address = findAddress(text);
  if (address === undefined) throw new Error('state.db: access_keys holds something that is no address');
  return address;
}
