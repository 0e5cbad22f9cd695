/** Where a device keeps its secrets: the platform's credential store, a file that only its owner reads. */
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { KEY_BYTES } from '../../channel/keys.ts';
import { bytesToHex } from '@noble/hashes/utils.js';
import type { PairedDevice } from './device.ts';
import { findPairedDevice } from './device.ts';

/** Short texts under names of small letters, digits and hyphens. A write is lasting when its promise is fulfilled. */
export interface SecretStorage {
  read(name: string): Promise<string | undefined>;
  write(name: string, text: string): Promise<void>;
  erase(name: string): Promise<void>;
}

/** Under which name the device of a gateway is kept. @param gatewayId as in `PairedDevice` */
export function deviceEntry(gatewayId: string): string {
  return `device-${gatewayId.replaceAll(' ', '')}`;
}

/** @returns `undefined` if this device is not paired with that gateway */
export async function loadDevice(storage: SecretStorage, gatewayId: string): Promise<PairedDevice | undefined> {
  const text = await storage.read(deviceEntry(gatewayId));
  return text === undefined ? undefined : findPairedDevice(text);
}

/** Here only: the gateway still knows the device until it is revoked there. */
export async function forgetDevice(storage: SecretStorage, { gatewayId }: PairedDevice): Promise<void> {
  await storage.erase(deviceEntry(gatewayId));
}

export async function saveDevice(storage: SecretStorage, device: PairedDevice): Promise<void> {
  await storage.write(deviceEntry(device.gatewayId), JSON.stringify(device));
}

/** Under which name the key that redeems an invite is kept until the answer is there. */
export function pendingEntry(inviteId: Uint8Array): string {
  return `pairing-${bytesToHex(inviteId)}`;
}

/** The secret key that this invite was, or is to be, redeemed with: stored before it is used, and the same each time. */
export async function loadPendingKey(storage: SecretStorage, entry: string, crypto: Crypto): Promise<Uint8Array> {
  const stored = findBase64url((await storage.read(entry)) ?? '');
  if (stored?.length === KEY_BYTES) return stored;
  const key = crypto.randomBytes(KEY_BYTES);
  await storage.write(entry, formatBase64url(key));
  return key;
}
