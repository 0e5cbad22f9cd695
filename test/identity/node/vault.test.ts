import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { writeFileAtomically } from '../../../core/config/atomic-file.ts';
import { changeFiles } from '../../../core/config/home.ts';
import { IdentityError, type SecretStore } from '../../../identity/node/secret-store.ts';
import { openVaultStore, type VaultOptions } from '../../../identity/node/vault-store.ts';
import { runs } from '../../support/sampling.ts';
import { temporaryHome, WEAK } from './home.ts';

let home: string;
let remove: () => void;
beforeEach(() => ({ home, remove } = temporaryHome()));
afterEach(() => remove());

const open = (more: Partial<VaultOptions> = {}): Promise<SecretStore> =>
  openVaultStore({
    home,
    passphrase: undefined,
    randomBytes,
    writeFile: writeFileAtomically,
    exclusively: (change) => changeFiles(home, change),
    mayCreate: true,
    scryptCost: WEAK,
    ...more,
  });
const path = (name: string): string => join(home, name);
const modeOf = (name: string): string => (statSync(path(name)).mode & 0o777).toString(8);
const readVault = (): { key: object; check: string; entries: Record<string, string> } =>
  JSON.parse(readFileSync(path('vault.json'), 'utf8')) as ReturnType<typeof readVault>;
const writeVault = (vault: object): void => writeFileSync(path('vault.json'), JSON.stringify(vault));
const failure = async (attempt: Promise<unknown>): Promise<IdentityError> => {
  const error: unknown = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(IdentityError);
  return error as IdentityError;
};
const secret = new Uint8Array(32).fill(5);

describe.each([
  ['with a passphrase', { passphrase: 'correct horse' }],
  ['with a key file', {}],
])('%s', (_, options) => {
  test('what was put there is there the next time, and gone once it is deleted', async () => {
    const store = await open(options);
    expect(await store.get('a')).toBeUndefined();
    await store.set('a', secret);
    const again = await open({ ...options, mayCreate: false });
    expect(await again.get('a')).toEqual(secret);
    await again.set('a', new Uint8Array(3));
    expect(await again.get('a')).toEqual(new Uint8Array(3));
    expect(await store.delete('a')).toBe(true);
    expect(await again.delete('a')).toBe(false);
    expect(await again.get('a')).toBeUndefined();
  });

  test('any bytes under any name, and many at once', async () => {
    const store = await open(options);
    const names = fc.oneof(fc.stringMatching(/^[a-z0-9-]+$/), fc.constantFrom('constructor', '0', '-'));
    expect(await store.get('constructor')).toBeUndefined();
    expect(await store.delete('constructor')).toBe(false);
    const entries = fc.uniqueArray(fc.tuple(names, fc.uint8Array()), {
      selector: ([name]) => name,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(entries, async (some) => {
        await Promise.all(some.map(([name, bytes]) => store.set(name, bytes)));
        for (const [name, bytes] of some) expect(await store.get(name)).toEqual(bytes);
      }),
      runs(400),
    );
  });

  test('nothing of a secret is in a file, and the files are the owner’s alone', async () => {
    const store = await open(options);
    await store.set('a', new TextEncoder().encode('the canary sings'));
    const files = ['vault.json', ...(existsSync(path('vault.key')) ? ['vault.key'] : [])];
    expect(files).toHaveLength('passphrase' in options ? 1 : 2);
    for (const file of files) {
      expect(modeOf(file)).toBe('600');
      const text = readFileSync(path(file), 'latin1');
      for (const form of ['latin1', 'hex', 'base64url'] as const) {
        expect(text).not.toContain(Buffer.from('canary').toString(form).slice(1, -1));
      }
      expect(text).not.toContain('horse');
    }
    expect(store.description).toContain('passphrase' in options ? 'SVC_VAULT_PASSPHRASE' : 'vault.key');
  });

  test('a vault that is gone is not made anew where one was', async () => {
    await open(options);
    rmSync(path('vault.json'));
    expect(await failure(open({ ...options, mayCreate: false }))).toMatchObject({ code: 'missing' });
    expect(existsSync(path('vault.json'))).toBe(false);
  });

  test('a damaged file is said, and left as it is', async () => {
    const store = await open(options);
    await store.set('a', secret);
    const whole = readFileSync(path('vault.json'), 'utf8');
    for (const text of ['', '{', '[]', whole.slice(0, -3), whole.replace('"version": 1', '"version": 2')]) {
      writeFileSync(path('vault.json'), text);
      expect(await failure(open(options))).toMatchObject({ code: 'corrupt' });
      expect(await failure(store.get('a'))).toMatchObject({ code: 'corrupt' });
      expect(await failure(store.set('b', secret))).toMatchObject({ code: 'corrupt' });
      expect(readFileSync(path('vault.json'), 'utf8')).toBe(text);
    }
    writeFileSync(path('vault.json'), whole);
    expect(await store.get('a')).toEqual(secret);
  });

  test('an entry does not open under another name, nor with a bit flipped', async () => {
    const store = await open(options);
    await store.set('a', secret);
    await store.set('b', new Uint8Array(32));
    const vault = readVault();
    writeVault({ ...vault, entries: { a: vault.entries['b'], b: vault.entries['a'] } });
    expect(await failure(store.get('a'))).toMatchObject({ code: 'corrupt', message: expect.stringContaining('"a"') });
    const box = Buffer.from(vault.entries['a']!, 'base64url');
    for (let bit = 0; bit < box.length * 8; bit += 5) {
      const flipped = Buffer.from(box.with(bit >> 3, box[bit >> 3]! ^ (1 << (bit & 7)))).toString('base64url');
      writeVault({ ...vault, entries: { ...vault.entries, a: flipped } });
      expect(await failure(store.get('a'))).toMatchObject({ code: 'corrupt' });
    }
    writeVault({ ...vault, entries: { ...vault.entries, a: '' } });
    expect(await failure(store.get('a'))).toMatchObject({ code: 'corrupt' });
  });
});

describe('the passphrase', () => {
  test('a wrong one opens nothing and changes nothing', async () => {
    await (await open({ passphrase: 'right' })).set('a', secret);
    const before = readFileSync(path('vault.json'), 'utf8');
    for (const passphrase of ['wrong', '', 'right ', 'Right']) {
      const error = await failure(open({ passphrase }));
      expect(error).toMatchObject({ code: 'wrong_passphrase', message: expect.stringContaining('postern identity') });
    }
    expect(readFileSync(path('vault.json'), 'utf8')).toBe(before);
  });

  test('a missing one is asked for', async () => {
    await open({ passphrase: 'right' });
    expect(await failure(open())).toMatchObject({
      code: 'locked',
      message: expect.stringContaining('SVC_VAULT_PASSPHRASE'),
    });
    expect(existsSync(path('vault.key'))).toBe(false);
  });

  test('typed on another keyboard is the same', async () => {
    await (await open({ passphrase: 'gru\u0308n' })).set('a', secret);
    expect(await (await open({ passphrase: 'gr\u00fcn' })).get('a')).toEqual(secret);
  });

  test('given for a vault that was made with a key file, it is said to be unused', async () => {
    await open();
    expect((await open({ passphrase: 'late' })).description).toContain('made without it');
  });

  test('two vaults of one passphrase have nothing in common', async () => {
    await open({ passphrase: 'same' });
    const first = readVault();
    rmSync(path('vault.json'));
    await open({ passphrase: 'same' });
    expect(readVault().key).not.toEqual(first.key);
    writeVault({ ...readVault(), check: first.check });
    expect(await failure(open({ passphrase: 'same' }))).toMatchObject({ code: 'wrong_passphrase' });
  });

  test('costs what a guess is to cost, unless a test says otherwise', async () => {
    const exclusively: VaultOptions['exclusively'] = (change) => changeFiles(home, change);
    const options = { home, passphrase: 'x', randomBytes, writeFile: writeFileAtomically, exclusively };
    await openVaultStore({ ...options, mayCreate: true });
    expect(readVault().key).toMatchObject({ type: 'passphrase', n: 131_072, r: 8, p: 1 });
    const salt = Buffer.alloc(16).toString('base64url');
    for (const cost of [
      { n: 2 ** 30, r: 8, p: 1 },
      { n: 16, r: 1000, p: 1 },
      { n: 16, r: 8, p: 1000 },
      { n: 0, r: 8, p: 1 },
      { n: 3, r: 8, p: 1 },
    ]) {
      writeVault({ ...readVault(), key: { type: 'passphrase', salt, ...cost } });
      expect(await failure(open({ passphrase: 'x' }))).toMatchObject({ code: 'corrupt' });
      writeVault({ ...readVault(), key: { type: 'passphrase', salt, n: 16, r: 8, p: 1 } });
    }
  });
});

describe('the key file', () => {
  test('gone or changed, the vault does not open and nothing is made anew', async () => {
    await (await open()).set('a', secret);
    const [vault, key] = ['vault.json', 'vault.key'].map((name) => readFileSync(path(name), 'utf8')) as [
      string,
      string,
    ];
    for (const text of ['', 'x', Buffer.alloc(32).toString('base64url'), `${key.trim()}A`]) {
      writeFileSync(path('vault.key'), text);
      expect(await failure(open())).toMatchObject({ code: 'corrupt' });
      expect(readFileSync(path('vault.key'), 'utf8')).toBe(text);
    }
    rmSync(path('vault.key'));
    expect(await failure(open())).toMatchObject({ code: 'missing', message: expect.stringContaining('vault.key') });
    expect(existsSync(path('vault.key'))).toBe(false);
    expect(readFileSync(path('vault.json'), 'utf8')).toBe(vault);
    writeFileSync(path('vault.key'), key);
    expect(await (await open()).get('a')).toEqual(secret);
  });

  test('of a start that was cut short is used', async () => {
    await open();
    const key = readFileSync(path('vault.key'), 'utf8');
    rmSync(path('vault.json'));
    await open();
    expect(readFileSync(path('vault.key'), 'utf8')).toBe(key);
  });
});
