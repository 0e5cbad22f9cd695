/** The identity of a running service, whose store may not open, or not yet. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createIdentityService } from '../../service/identity-service.ts';
import { listAuditRecords } from '../../core/audit/audit-log.ts';
import { openDatabase, type Database } from '../../storage/database.ts';
import { addressOf } from '../../identity/address.ts';
import { deriveAgentKey } from '../../identity/agent-key.ts';
import type { Identity } from '../../identity/node/open-identity.ts';
import { deriveRelayKey } from '../../identity/relay-key.ts';
import { IdentityError } from '../../identity/node/secret-store.ts';
import { asAuditKey, asColumnKey, asGatewayKey, asMasterKey } from '../../identity/secret-keys.ts';
import { auditEvents } from '../../service/audit-events.ts';

const master = asMasterKey(randomBytes(32));
const identity: Identity = {
  masterAddress: addressOf(master),
  store: { kind: 'vault', description: 'Secrets are somewhere.' },
  masterKey: () => master,
  agentKey: (index) => deriveAgentKey(master, index),
  relayKey: (origin) => deriveRelayKey(master, origin),
  gatewayKey: () => asGatewayKey(randomBytes(32)),
  columnKey: () => asColumnKey(randomBytes(32)),
  auditKey: () => asAuditKey(new Uint8Array(32)),
};

let home: string;
let database: Database;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-service-'));
  database = openDatabase(home);
});
afterEach(() => {
  database.close();
  rmSync(home, { recursive: true });
});

function begin(openIdentity: () => Promise<Identity>) {
  const said: string[] = [];
  const time = { ms: 0 };
  const say = (words: string) => void said.push(words);
  const service = createIdentityService({
    openIdentity,
    database,
    say,
    now: Date.now,
    elapsed: () => time.ms,
    storage: { note: () => undefined, retry: () => undefined },
  });
  return { said, service, time };
}

test('opens once for all who wait, and says where the secrets are', async () => {
  let opened = 0;
  const { said, service } = begin(async () => {
    opened += 1;
    return identity;
  });
  const [, first, second] = await Promise.all([service.begin(), service.open(), service.open()]);
  expect(second).toBe(first);
  expect([opened, said]).toEqual([1, ['Secrets are somewhere.']]);
});

test('a store that fails says its remedy once, is left alone for a while, and is then tried again', async () => {
  let opened = 0;
  let isLocked = true;
  const { said, service, time } = begin(async () => {
    opened += 1;
    if (isLocked) throw new IdentityError('locked', 'it is locked. Unlock it.');
    return identity;
  });
  await service.begin();
  expect(said).toEqual([expect.stringMatching(/^postern: it is locked\. Unlock it\.\nUntil it opens/)]);
  for (let n = 0; n < 3; n += 1) {
    await expect(service.open()).rejects.toMatchObject({
      code: 'identity_unavailable',
      message: expect.not.stringContaining('locked'),
      headers: { 'retry-after': '10' },
    });
  }
  expect([opened, said.length]).toEqual([1, 1]);
  time.ms += 10_000;
  await expect(service.open()).rejects.toThrow();
  expect([opened, said.length]).toEqual([2, 1]);
  isLocked = false;
  time.ms += 10_000;
  expect((await service.open()).list()).toEqual([]);
  expect(said).toHaveLength(2);
});

test('what another error says is not for the owner', async () => {
  const { said, service } = begin(() => Promise.reject(Object.assign(new Error('secret'), { code: 'ENOSPC' })));
  await service.begin();
  expect(said[0]).toContain('the identity does not open (ENOSPC).');
  expect(said.join()).not.toContain('secret');
});

test('those who were turned away before it opened are in the audit log after the end', async () => {
  const { service } = begin(() => Promise.resolve(identity));
  for (const reason of ['malformed', 'malformed', 'no_credential']) service.refusals.note(reason);
  await service.begin();
  (await service.open()).create({});
  await service.close();
  expect(listAuditRecords({ database, events: auditEvents }, { limit: 9 }).map(({ entry }) => entry)).toMatchObject([
    { kind: 'refused', reason: 'no_credential', count: 1 },
    { kind: 'refused', reason: 'malformed', count: 2 },
    { kind: 'key_created' },
  ]);
});

test('one that opens after the end touches nothing any more', async () => {
  let finish: (value: Identity) => void = () => undefined;
  const { said, service } = begin(() => new Promise((resolve) => (finish = resolve)));
  const opening = service.begin();
  const closed = service.close();
  finish(identity);
  await Promise.all([opening, closed]);
  expect(said).toEqual([]);
  expect(database.prepare("SELECT name FROM sqlite_master WHERE name = 'audit_log'").all()).toEqual([]);
});
