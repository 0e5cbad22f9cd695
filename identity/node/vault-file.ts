/**
 * `vault.json`, where secrets lie on a machine without a credential store: each sealed by itself with
 * XChaCha20-Poly1305, under a key that a passphrase is stretched to or that lies in a file of its own.
 *
 *     { "version": 1,
 *       "key": { "type": "passphrase", "n", "r", "p", "salt" } | { "type": "file" },
 *       "check": box of nothing,
 *       "entries": { name: box } }
 *
 * A box is base64url of nonce (24) ‖ ciphertext ‖ tag (16). Its associated data is LP16("postern") ‖ LP16(name), the
 * check's name being empty; so no box can be put in another's place. The check tells a wrong passphrase from a damaged
 * entry. The names are not tied to the folder, which may be moved: the file moves with it.
 */
import { scrypt as scryptWithCallback } from 'node:crypto';
import { promisify } from 'node:util';
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js';
import * as z from 'zod';
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import { concatBytes, EMPTY, lengthPrefixed, utf8ToBytes } from '../../channel/bytes.ts';
import type { RandomBytes } from '../sealed-column.ts';

export const VAULT_KEY_BYTES = 32;
const SALT_BYTES = 16;
const NONCE_BYTES = 24;
const TAG_BYTES = 16;
const SERVICE = 'postern';
const CHECK = '';

/** RFC 7914 §2; at most 1 GiB, so that a changed file can't take the machine down. */
const scryptCost = z.object({
  n: z
    .int()
    .min(2)
    .max(1_048_576)
    .refine((n) => Number.isInteger(Math.log2(n))),
  r: z.int().min(1).max(8),
  p: z.int().min(1).max(4),
});
export type ScryptCost = Readonly<z.output<typeof scryptCost>>;

/** OWASP's first choice for scrypt: 128 MiB and about half a second, for each guess as well. */
export const SCRYPT_COST: ScryptCost = { n: 131_072, r: 8, p: 1 };

const vaultSchema = z.strictObject({
  version: z.literal(1),
  key: z.discriminatedUnion('type', [
    z.strictObject({ type: z.literal('passphrase'), ...scryptCost.shape, salt: z.string() }),
    z.strictObject({ type: z.literal('file') }),
  ]),
  check: z.string(),
  entries: z.record(z.string(), z.string()),
});

export type Vault = Readonly<z.output<typeof vaultSchema>>;
export type VaultKeySource = Vault['key'];

/** `undefined` for text that is no vault. */
export function findVault(text: string): Vault | undefined {
  try {
    return vaultSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

export function formatVault(vault: Vault): string {
  return `${JSON.stringify(vault, null, 2)}\n`;
}

export function newPassphraseSource(cost: ScryptCost, randomBytes: RandomBytes): VaultKeySource {
  return { type: 'passphrase', ...cost, salt: formatBase64url(randomBytes(SALT_BYTES)) };
}

export function newVault(key: VaultKeySource, vaultKey: Uint8Array, randomBytes: RandomBytes): Vault {
  return { version: 1, key, check: sealBox(vaultKey, { name: CHECK, secret: EMPTY }, randomBytes), entries: {} };
}

const scrypt = promisify<string, Uint8Array, number, object, Buffer>(scryptWithCallback);

/** Two keyboards may write the same letter differently, hence the normal form. The memory is what OpenSSL counts. */
export async function stretchPassphrase(
  passphrase: string,
  { n, r, p, salt }: Extract<VaultKeySource, { type: 'passphrase' }>,
): Promise<Uint8Array> {
  const cost = { N: n, r, p, maxmem: 128 * r * (n + p + 2) };
  return scrypt(passphrase.normalize('NFKC'), findBase64url(salt) ?? EMPTY, VAULT_KEY_BYTES, cost);
}

/** True if this is the key that the vault was made with. */
export function opensVault(vault: Vault, vaultKey: Uint8Array): boolean {
  return openBox(vaultKey, CHECK, vault.check) !== undefined;
}

export function sealBox(
  vaultKey: Uint8Array,
  { name, secret }: { readonly name: string; readonly secret: Uint8Array },
  randomBytes: RandomBytes,
): string {
  const nonce = randomBytes(NONCE_BYTES);
  return formatBase64url(concatBytes(nonce, cipher(vaultKey, nonce, name).encrypt(secret)));
}

/** `undefined` if the box was not sealed with this key under this name. */
export function openBox(vaultKey: Uint8Array, name: string, box: string): Uint8Array | undefined {
  const bytes = findBase64url(box);
  if (bytes === undefined || bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  try {
    return cipher(vaultKey, bytes.subarray(0, NONCE_BYTES), name).decrypt(bytes.subarray(NONCE_BYTES));
  } catch {
    return undefined;
  }
}

function cipher(vaultKey: Uint8Array, nonce: Uint8Array, name: string) {
  const associatedData = concatBytes(...[SERVICE, name].map((part) => lengthPrefixed(utf8ToBytes(part))));
  return xchacha20poly1305(vaultKey, nonce, associatedData);
}
