/** Opening, making and restoring an identity in the vault; the credential store has `keyring.test.ts`. */
import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inspect } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeFileAtomically } from '../../../core/config/atomic-file.ts';
import { addressOf } from '../../../identity/address.ts';
import { findBackup, formatBackup } from '../../../identity/recovery-phrase.ts';
import type { StoreOptions } from '../../../identity/node/choose-store.ts';
import { openIdentity, openOrCreateIdentity, type Identity } from '../../../identity/node/open-identity.ts';
import { restoreIdentity } from '../../../identity/node/restore-identity.ts';
import { IdentityError, type IdentityErrorCode } from '../../../identity/node/secret-store.ts';
import { openVaultStore } from '../../../identity/node/vault-store.ts';
import { asMasterKey } from '../../../identity/secret-keys.ts';
import { storeOptions, temporaryHome } from './home.ts';

let home: string;
let remove: () => void;
beforeEach(() => ({ home, remove } = temporaryHome()));
afterEach(() => remove());

const options = (more: Partial<StoreOptions> = {}): StoreOptions => storeOptions(home, more);
const path = (name: string): string => join(home, name);
const readRecord = (): object => JSON.parse(readFileSync(path('identity.json'), 'utf8')) as object;
const writeRecord = (record: object): void => writeFileSync(path('identity.json'), JSON.stringify(record));
const vault = () => openVaultStore({ ...options(), mayCreate: true });
const hex = (secret: Uint8Array): string => Buffer.from(secret).toString('hex');
const secretsOf = (identity: Identity): readonly string[] =>
  [identity.masterKey(), identity.gatewayKey(), identity.columnKey(), identity.auditKey()].map(hex);
const isRefused = async (attempt: Promise<unknown>, code: IdentityErrorCode): Promise<string> => {
  const error: unknown = await attempt.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(IdentityError);
  expect(error).toMatchObject({ code });
  return (error as IdentityError).message;
};

describe('an identity', () => {
  test('is made once, of four secrets, and is the same ever after', async () => {
    const made = await openOrCreateIdentity(options());
    expect(new Set(secretsOf(made)).size).toBe(4);
    expect(addressOf(made.masterKey())).toBe(made.masterAddress);
    for (const open of [openOrCreateIdentity, openIdentity]) {
      const again = await open(options());
      expect(secretsOf(again)).toEqual(secretsOf(made));
      expect(again.masterAddress).toBe(made.masterAddress);
      expect(hex(again.agentKey(2))).toEqual(hex(made.agentKey(2)));
    }
    expect(readRecord()).toEqual({
      version: 1,
      store: 'vault',
      address: made.masterAddress,
      secrets: ['master', 'gateway', 'columns', 'audit'],
    });
    expect((statSync(path('identity.json')).mode & 0o777).toString(8)).toBe('600');
  });

  test('is not made by looking for it', async () => {
    expect(await isRefused(openIdentity(options()), 'no_identity')).toContain('postern identity restore');
    expect(existsSync(path('vault.json'))).toBe(false);
  });

  test('shows no secret to whoever prints it', async () => {
    const identity = await openOrCreateIdentity(options());
    const printed = inspect(identity, { depth: 9, showHidden: true }) + JSON.stringify(identity);
    for (const secret of secretsOf(identity)) {
      expect(printed).not.toContain(secret.slice(0, 8));
      expect(printed).not.toContain([...Buffer.from(secret, 'hex').subarray(0, 3)].join(', '));
    }
  });

  test('moves with its folder', async () => {
    const made = await openOrCreateIdentity(options());
    const moved = `${home}-moved`;
    renameSync(home, moved);
    home = moved;
    expect(secretsOf(await openIdentity(options()))).toEqual(secretsOf(made));
    rmSync(moved, { recursive: true });
  });
});

describe('nothing is made anew over what was there', () => {
  test.each(['master', 'gateway', 'columns', 'audit'])('a secret that is gone: %s', async (name) => {
    await openOrCreateIdentity(options());
    await (await vault()).delete(name);
    const before = readFileSync(path('vault.json'), 'utf8');
    for (const open of [openOrCreateIdentity, openIdentity]) {
      const message = await isRefused(open(options()), 'missing');
      expect(message).toContain(`"${name}"`);
      expect(message).toContain('--replace');
    }
    expect(readFileSync(path('vault.json'), 'utf8')).toBe(before);
  });

  test.each([
    ['no key of the curve', new Uint8Array(32)],
    ['too short', new Uint8Array(31)],
  ])('a master key that is none: %s', async (_, secret) => {
    await openOrCreateIdentity(options());
    await (await vault()).set('master', secret);
    await isRefused(openOrCreateIdentity(options()), 'corrupt');
  });

  test('another master key', async () => {
    const { masterAddress } = await openOrCreateIdentity(options());
    const other = asMasterKey(randomBytes(32));
    await (await vault()).set('master', other);
    const message = await isRefused(openOrCreateIdentity(options()), 'mismatch');
    expect(message).toContain(masterAddress);
    expect(message).toContain(addressOf(other));
  });

  test('the vault file, the record', async () => {
    await openOrCreateIdentity(options());
    renameSync(path('vault.json'), path('elsewhere'));
    await isRefused(openOrCreateIdentity(options()), 'missing');
    renameSync(path('elsewhere'), path('vault.json'));
    for (const text of ['', '{}', '{"version":1,"store":"paper","secrets":[]}', '{"version":1,"store":"vault"}']) {
      writeFileSync(path('identity.json'), text);
      expect(await isRefused(openOrCreateIdentity(options()), 'corrupt')).toContain('identity.json');
      expect(readFileSync(path('identity.json'), 'utf8')).toBe(text);
    }
  });

  test('a lost record is written again from what the vault holds', async () => {
    const made = await openOrCreateIdentity(options());
    const record = readRecord();
    rmSync(path('identity.json'));
    expect(secretsOf(await openOrCreateIdentity(options({ preference: 'auto' })))).toEqual(secretsOf(made));
    expect(readRecord()).toEqual(record);
  });

  test('a choice of store that came too late', async () => {
    await openOrCreateIdentity(options());
    expect(await isRefused(openOrCreateIdentity(options({ preference: 'keyring' })), 'mismatch')).toContain('vault');
    rmSync(path('identity.json'));
    await isRefused(openOrCreateIdentity(options({ preference: 'keyring' })), 'mismatch');
  });

  test('a disk that stops taking writes, at each of them', async () => {
    for (let limit = 0; limit < 12; limit += 1) {
      let writes = 0;
      const writeFile: StoreOptions['writeFile'] = async (...file) => {
        if (writes++ >= limit) throw new Error('ENOSPC');
        await writeFileAtomically(...file);
      };
      const first = await openOrCreateIdentity(options({ writeFile })).catch(() => undefined);
      const second = await openOrCreateIdentity(options());
      if (first !== undefined) expect(secretsOf(second)).toEqual(secretsOf(first));
      expect(secretsOf(await openIdentity(options()))).toEqual(secretsOf(second));
      for (const file of ['vault.json', 'vault.key', 'identity.json']) rmSync(path(file));
    }
  });
});

describe('a backup', () => {
  test('brings the same addresses back in another folder, and nothing else', async () => {
    const made = await openOrCreateIdentity(options());
    const words = formatBackup(made.masterKey());
    const other = temporaryHome();
    try {
      const restored = await restoreIdentity(findBackup(words)!, { ...storeOptions(other.home), mayReplace: false });
      expect(restored.masterAddress).toBe(made.masterAddress);
      expect(hex(restored.agentKey(7))).toEqual(hex(made.agentKey(7)));
      expect(hex(restored.gatewayKey())).not.toBe(hex(made.gatewayKey()));
      expect(secretsOf(await openIdentity(storeOptions(other.home)))).toEqual(secretsOf(restored));
    } finally {
      other.remove();
    }
  });

  test('of the same identity changes nothing', async () => {
    const made = await openOrCreateIdentity(options());
    const restored = await restoreIdentity(made.masterKey(), { ...options(), mayReplace: false });
    expect(secretsOf(restored)).toEqual(secretsOf(made));
  });

  test('of another is refused, unless it may replace what is there', async () => {
    const made = await openOrCreateIdentity(options());
    const other = asMasterKey(randomBytes(32));
    expect(await isRefused(restoreIdentity(other, { ...options(), mayReplace: false }), 'exists')).toContain(
      '--replace',
    );
    expect(secretsOf(await openIdentity(options()))).toEqual(secretsOf(made));
    const replaced = await restoreIdentity(other, { ...options(), mayReplace: true });
    expect(replaced.masterAddress).toBe(addressOf(other));
    expect(hex(replaced.gatewayKey())).toBe(hex(made.gatewayKey()));
    expect(secretsOf(await openIdentity(options()))).toEqual(secretsOf(replaced));
  });

  test('of another is refused where only the record still knows the first', async () => {
    const made = await openOrCreateIdentity(options());
    await (await vault()).delete('master');
    const other = asMasterKey(randomBytes(32));
    await isRefused(restoreIdentity(other, { ...options(), mayReplace: false }), 'exists');
    const restored = await restoreIdentity(made.masterKey(), { ...options(), mayReplace: false });
    expect(secretsOf(restored)).toEqual(secretsOf(made));
  });

  test('repairs what is damaged or gone, if it may', async () => {
    const made = await openOrCreateIdentity(options());
    const { entries, ...rest } = JSON.parse(readFileSync(path('vault.json'), 'utf8')) as { entries: object };
    writeFileSync(path('vault.json'), JSON.stringify({ ...rest, entries: { ...entries, columns: 'AAAA' } }));
    await (await vault()).delete('gateway');
    await isRefused(restoreIdentity(made.masterKey(), { ...options(), mayReplace: false }), 'missing');
    const repaired = await restoreIdentity(made.masterKey(), { ...options(), mayReplace: true });
    expect(repaired.masterAddress).toBe(made.masterAddress);
    expect(hex(repaired.auditKey())).toBe(hex(made.auditKey()));
    expect(hex(repaired.columnKey())).not.toBe(hex(made.columnKey()));
    expect(hex(repaired.gatewayKey())).not.toBe(hex(made.gatewayKey()));
    expect(secretsOf(await openIdentity(options()))).toEqual(secretsOf(repaired));
  });

  test('cut short by a full disk, is one identity or the other afterwards', async () => {
    const other = asMasterKey(randomBytes(32));
    for (let limit = 0; limit < 5; limit += 1) {
      const made = await openOrCreateIdentity(options());
      let writes = 0;
      const writeFile: StoreOptions['writeFile'] = async (...file) => {
        if (writes++ >= limit) throw new Error('ENOSPC');
        await writeFileAtomically(...file);
      };
      await restoreIdentity(other, { ...options({ writeFile }), mayReplace: true }).catch(() => undefined);
      const after = await openOrCreateIdentity(options());
      expect([made.masterAddress, addressOf(other)]).toContain(after.masterAddress);
      await restoreIdentity(asMasterKey(randomBytes(32)), { ...options(), mayReplace: true });
    }
  });

  test('does not take a vault over whose passphrase is another', async () => {
    await openOrCreateIdentity(options({ passphrase: 'right' }));
    const before = readFileSync(path('vault.json'), 'utf8');
    const attempt = restoreIdentity(asMasterKey(randomBytes(32)), {
      ...options({ passphrase: 'wrong' }),
      mayReplace: true,
    });
    await isRefused(attempt, 'wrong_passphrase');
    expect(readFileSync(path('vault.json'), 'utf8')).toBe(before);
  });
});

test('which store it is, is written down before the first secret goes there', async () => {
  const writes: string[] = [];
  const writeFile: StoreOptions['writeFile'] = async (file, content, mode) => {
    writes.push(`${basename(file)}${content.includes('"master"') ? ' with the master key' : ''}`);
    await writeFileAtomically(file, content, mode);
  };
  await openOrCreateIdentity(options({ writeFile }));
  expect(writes.indexOf('identity.json')).toBeGreaterThanOrEqual(0);
  expect(writes.indexOf('identity.json')).toBeLessThan(writes.indexOf('vault.json with the master key'));
  expect(writes.at(-1)).toBe('identity.json with the master key');
});

test('a record of a first start that was cut short stays with its store', async () => {
  writeRecord({ version: 1, store: 'vault', secrets: [] });
  expect((await openOrCreateIdentity(options({ preference: 'auto' }))).store.kind).toBe('vault');
});
