import { createHash, createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { EMPTY_HEAD, hashOfRow, sealOfHead, type AuditHead, type Seal } from '../../../core/audit/audit-chain.ts';
import { createAuditEntryCodec, type AuditEvents } from '../../../core/audit/audit-entry.ts';
import {
  createAuditLog,
  listAuditRecords,
  verifyAuditLog,
  type AuditLog,
  type AuditVerdict,
} from '../../../core/audit/audit-log.ts';
import { auditEvents, type AuditEntry } from '../../../service/audit-events.ts';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { createAuditSeal } from '../../../identity/audit-seal.ts';
import { asAuditKey } from '../../../identity/secret-keys.ts';
import { runs } from '../../support/sampling.ts';

const seal = createAuditSeal(asAuditKey(new Uint8Array(32).fill(3)));
const theirs = createAuditSeal(asAuditKey(new Uint8Array(32).fill(4)));

let home: string;
let database: Database;
let time: number;
let log: AuditLog<AuditEntry>;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-audit-'));
  database = openDatabase(home);
  time = 1_700_000_000_000;
  log = open();
});
afterEach(() => {
  database.close();
  rmSync(home, { recursive: true, force: true });
});

const open = (): AuditLog<AuditEntry> => createAuditLog({ database, events: auditEvents, seal, now: () => time++ });
const verify = (): AuditVerdict => verifyAuditLog({ database, events: auditEvents, seal });
const revoked = (kid: string): AuditEntry => ({ kind: 'key_revoked', kid });
const fill = (count: number): void => {
  for (let number = 1; number <= count; number += 1) log.append(revoked(`k${number}`));
};
/** What somebody does who can write the file. */
const tamper = (sql: string, ...values: unknown[]): void => {
  database.exec('DROP TRIGGER IF EXISTS audit_log_rows_stay; DROP TRIGGER IF EXISTS audit_log_rows_hold');
  database.prepare(sql).run(...values);
};
const kinds = (): readonly (string | undefined)[] =>
  listAuditRecords({ database, events: auditEvents }, { limit: 100 })
    .map(({ entry }) => entry?.kind)
    .toReversed();

interface RawRow {
  readonly seq: number;
  readonly at_ms: number;
  readonly entry: string;
}

/** Makes every row's hash fit again, and the head as well but for its seal. */
function rechain(sealing: Seal): void {
  let head: AuditHead = EMPTY_HEAD;
  for (const row of database.prepare<[], RawRow>('SELECT * FROM audit_log ORDER BY seq').all()) {
    const hash = hashOfRow(head.hash, { seq: row.seq, atMs: row.at_ms, entry: row.entry });
    tamper('UPDATE audit_log SET hash = ? WHERE seq = ?', hash, row.seq);
    head = { count: row.seq, hash };
  }
  tamper('UPDATE audit_head SET count = ?, hash = ?, seal = ?', head.count, head.hash, sealOfHead(head, sealing));
}

describe('entries', () => {
  test('are kept in order, with their time, and listed newest first, page by page', () => {
    expect(verify()).toEqual({ intact: true, count: 0 });
    fill(5);
    expect(verify()).toEqual({ intact: true, count: 5 });
    expect(listAuditRecords({ database, events: auditEvents }, { limit: 2 })).toEqual([
      { seq: 5, atMs: 1_700_000_000_004, entry: revoked('k5') },
      { seq: 4, atMs: 1_700_000_000_003, entry: revoked('k4') },
    ]);
    expect(
      listAuditRecords({ database, events: auditEvents }, { limit: 10, beforeSeq: 3 }).map(({ seq }) => seq),
    ).toEqual([2, 1]);
  });

  test('go on after a restart', () => {
    fill(2);
    database.close();
    database = openDatabase(home);
    log = open();
    fill(1);
    expect(verify()).toEqual({ intact: true, count: 3 });
  });

  test('from two processes make one chain', () => {
    const second = openDatabase(home);
    const other = createAuditLog({ database: second, events: auditEvents, seal, now: () => time++ });
    for (let turn = 0; turn < 5; turn += 1) {
      log.append(revoked('mine'));
      other.append(revoked('theirs'));
    }
    second.close();
    expect(verify()).toEqual({ intact: true, count: 10 });
  });

  test('go with the transaction that they are part of', () => {
    fill(1);
    const failing = database.transaction(() => {
      log.append(revoked('never'));
      throw new Error('not after all');
    });
    expect(() => failing.immediate()).toThrow('not after all');
    expect(verify()).toEqual({ intact: true, count: 1 });
    const going = database.transaction(() => {
      log.append(revoked('one'));
      log.append(revoked('two'));
    });
    going.immediate();
    expect(verify()).toEqual({ intact: true, count: 3 });
  });

  test.each([
    { kind: 'key_revoked' },
    { kind: 'key_revoked', kid: 'k', secret: 'x' },
    { kind: 'key_revoked', kid: 'k'.repeat(101) },
    { kind: 'prompt', text: 'x' },
    { kind: 'refused', reason: 'expired', count: -1 },
  ])('of another shape are refused: %j', (entry) => {
    expect(() => log.append(entry as AuditEntry)).toThrow();
    expect(verify()).toEqual({ intact: true, count: 0 });
  });

  test('can be declared with the fields that the log knows, and with no others', () => {
    // @ts-expect-error: no field holds text of any length
    const events: AuditEvents = { prompt_seen: { prompt: 'text' } };
    expect(() => createAuditEntryCodec(events).encode({ kind: 'prompt_seen', prompt: 'hello' })).toThrow();
  });

  test('cannot be changed or taken out by a mistake of ours', () => {
    fill(2);
    for (const sql of ["UPDATE audit_log SET entry = '{}'", 'DELETE FROM audit_log WHERE seq = 2']) {
      expect(() => database.prepare(sql).run()).toThrow('append-only');
    }
    expect(verify()).toEqual({ intact: true, count: 2 });
  });

  test('are hashed and sealed as it is written down', () => {
    fill(1);
    const row = database.prepare<[], { hash: Buffer; entry: string }>('SELECT hash, entry FROM audit_log').get()!;
    const u64 = (value: number): Buffer => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigUInt64BE(BigInt(value));
      return bytes;
    };
    const parts = [Buffer.from('svc-v1 audit row'), Buffer.alloc(32), u64(1), u64(1_700_000_000_000)];
    expect(row.entry).toBe('{"kind":"key_revoked","kid":"k1"}');
    const hash = createHash('sha256')
      .update(Buffer.concat([...parts, Buffer.from(row.entry)]))
      .digest();
    expect(row.hash).toEqual(hash);
    const head = database.prepare<[], { seal: Buffer }>('SELECT seal FROM audit_head').get()!;
    const message = Buffer.concat([Buffer.from('svc-v1 audit head'), u64(1), hash]);
    expect(head.seal).toEqual(createHmac('sha256', Buffer.alloc(32, 3)).update(message).digest());
  });
});

describe('tampering shows, and where', () => {
  const ROWS = 6;
  beforeEach(() => fill(ROWS));

  test('any flipped bit of any row', () => {
    const columns = ['entry', 'at_ms', 'hash'] as const;
    fc.assert(
      fc.property(fc.integer({ min: 1, max: ROWS }), fc.constantFrom(...columns), fc.nat(), (seq, column, at) => {
        const before = database.prepare('SELECT * FROM audit_log WHERE seq = ?').get(seq) as Record<string, unknown>;
        tamper(`UPDATE audit_log SET ${column} = ? WHERE seq = ?`, flipped(before[column], at), seq);
        expect(verify()).toEqual({ intact: false, seq, fault: 'changed' });
        tamper(`UPDATE audit_log SET ${column} = ? WHERE seq = ?`, before[column], seq);
        expect(verify()).toEqual({ intact: true, count: ROWS });
      }),
      runs(1000),
    );
  });

  function flipped(value: unknown, at: number): unknown {
    if (typeof value === 'number') return value + 1;
    const bytes = Buffer.from(value as string | Uint8Array);
    // The lowest bit: text stays text.
    bytes[at % bytes.length]! ^= 1;
    return typeof value === 'string' ? bytes.toString() : bytes;
  }

  test.each([1, 3, ROWS])('row %i taken out', (seq) => {
    tamper('DELETE FROM audit_log WHERE seq = ?', seq);
    expect(verify()).toEqual({ intact: false, seq, fault: 'missing' });
  });

  test.each([0, 1, 5])('the tail cut after row %i', (kept) => {
    tamper('DELETE FROM audit_log WHERE seq > ?', kept);
    expect(verify()).toEqual({ intact: false, seq: kept + 1, fault: 'missing' });
    const last = database.prepare('SELECT hash FROM audit_log WHERE seq = ?').get(kept) as { hash: Buffer } | undefined;
    tamper('UPDATE audit_head SET count = ?, hash = ?', kept, last?.hash ?? Buffer.alloc(32));
    expect(verify()).toEqual({ intact: false, seq: Math.max(kept, 1), fault: 'unsealed' });
  });

  test('a row taken out and the others moved up', () => {
    tamper('DELETE FROM audit_log WHERE seq = 3');
    for (let seq = 4; seq <= ROWS; seq += 1) tamper('UPDATE audit_log SET seq = ? WHERE seq = ?', seq - 1, seq);
    expect(verify()).toEqual({ intact: false, seq: 3, fault: 'changed' });
  });

  test('two rows in each other’s place', () => {
    tamper('UPDATE audit_log SET seq = 99 WHERE seq = 2');
    tamper('UPDATE audit_log SET seq = 2 WHERE seq = 4');
    tamper('UPDATE audit_log SET seq = 4 WHERE seq = 99');
    expect(verify()).toEqual({ intact: false, seq: 2, fault: 'changed' });
  });

  test.each([-1, 2 ** 53])('a time or a count that is none: %d', (value) => {
    tamper('UPDATE audit_head SET count = ?', value);
    expect(verify()).toEqual({ intact: false, seq: ROWS, fault: 'unsealed' });
    tamper('UPDATE audit_log SET at_ms = ? WHERE seq = 2', value);
    expect(verify()).toEqual({ intact: false, seq: 2, fault: 'changed' });
  });

  test('a row that somebody else added', () => {
    const head = database.prepare<[], AuditHead>('SELECT count, hash FROM audit_head').get()!;
    const row = { seq: ROWS + 1, atMs: time, entry: '{"kind":"key_revoked","kid":"x"}' };
    tamper('INSERT INTO audit_log VALUES (?, ?, ?, ?)', row.seq, row.atMs, row.entry, hashOfRow(head.hash, row));
    expect(verify()).toEqual({ intact: false, seq: ROWS + 1, fault: 'unsealed' });
  });

  test('everything computed anew, for want of the key', () => {
    tamper("UPDATE audit_log SET entry = replace(entry, 'k2', 'k9') WHERE seq = 2");
    rechain(theirs);
    expect(verify()).toEqual({ intact: false, seq: ROWS, fault: 'unsealed' });
    // With the key it would be the log's own: that is all that the seal rests on.
    rechain(seal);
    expect(verify()).toEqual({ intact: true, count: ROWS });
  });

  test('rows that this program does not write, though all is sealed', () => {
    tamper("UPDATE audit_log SET entry = '{}' WHERE seq = 2");
    rechain(seal);
    expect(verify()).toEqual({ intact: false, seq: 2, fault: 'unsealed' });
    expect(listAuditRecords({ database, events: auditEvents }, { limit: 1, beforeSeq: 3 })[0]).toMatchObject({
      seq: 2,
      entry: undefined,
    });
  });

  test.each([
    ['the head', 'DELETE FROM audit_head', ROWS],
    ['the seal', "UPDATE audit_head SET seal = x'00'", ROWS],
    ['the head’s hash', "UPDATE audit_head SET hash = x'00'", ROWS],
    ['the head’s count', 'UPDATE audit_head SET count = 5', ROWS],
  ])('%s gone or changed', (_, sql, seq) => {
    tamper(sql);
    expect(verify()).toEqual({ intact: false, seq, fault: 'unsealed' });
  });

  test.each([
    ['a cut tail', 'DELETE FROM audit_log WHERE seq > 3', { seq: 4, fault: 'missing' }],
    ['no rows at all', 'DELETE FROM audit_log', { seq: 1, fault: 'missing' }],
    ['a head that is gone', 'DELETE FROM audit_head', { seq: 7, fault: 'damage_found' }],
    ['a false seal', "UPDATE audit_head SET seal = x'00'", { seq: 7, fault: 'damage_found' }],
    ['a head that was set back', 'UPDATE audit_head SET count = 3', { seq: 7, fault: 'damage_found' }],
    ['a changed row', "UPDATE audit_log SET entry = '{}' WHERE seq = 2", { seq: 2, fault: 'changed' }],
  ])('also after the log went on: %s', (_, sql, expected) => {
    tamper(sql);
    fill(3);
    expect(verify()).toEqual({ intact: false, ...expected });
    log = open();
    fill(1);
    expect(verify()).toEqual({ intact: false, ...expected });
    expect(kinds().filter((kind) => kind === 'damage_found').length).toBeLessThanOrEqual(1);
    expect(kinds().slice(-4)).toEqual(Array.from({ length: 4 }, () => 'key_revoked'));
  });

  test('a cut tail with a head to match, after the log went on', () => {
    tamper('DELETE FROM audit_log WHERE seq > 3');
    rechain(theirs);
    fill(2);
    expect(verify()).toEqual({ intact: false, seq: 4, fault: 'damage_found' });
    expect(kinds()).toEqual([
      'key_revoked',
      'key_revoked',
      'key_revoked',
      'damage_found',
      'key_revoked',
      'key_revoked',
    ]);
  });

  test('all rows and the head gone, after the log went on', () => {
    tamper('DELETE FROM audit_log');
    tamper('DELETE FROM audit_head');
    log = open();
    fill(1);
    expect(verify()).toEqual({ intact: false, seq: 1, fault: 'damage_found' });
  });
});

test('a database that never had a log has an empty one to show', () => {
  const other = mkdtempSync(join(tmpdir(), 'postern-audit-'));
  const bare = openDatabase(other);
  expect(listAuditRecords({ database: bare, events: auditEvents }, { limit: 10 })).toEqual([]);
  expect(verifyAuditLog({ database: bare, events: auditEvents, seal })).toEqual({ intact: true, count: 0 });
  bare.close();
  rmSync(other, { recursive: true });
});
