/**
 * Where the gateway gets its access keys from. They need the identity, whose store may take seconds to open, or not open
 * at all; nobody waits for it but who shows a key.
 */
import type { AccessKeyRegistry } from '../identity/node/access-key-registry.ts';
import type { DeviceRegistry } from '../identity/node/device-registry.ts';
import type { InviteRegistry } from '../identity/node/invite-registry.ts';
import type { GatewayKey } from '../identity/secret-keys.ts';
import { RequestError } from './errors.ts';

export interface AccessKeySource {
  /**
   * The keys, as soon as they can be had. One that failed is tried again by a later call.
   * @throws {RequestError} `identity_unavailable`
   */
  open(): Promise<AccessKeyRegistry>;
  /** What pairing needs of the same identity. @throws {RequestError} as `open` does */
  openPairings(): Promise<Pairings>;
}

export interface Pairings {
  readonly devices: DeviceRegistry;
  readonly invites: InviteRegistry;
  gatewayKey(): GatewayKey;
  /** Calls it when a device was paired, or an invite made or closed. Stays for as long as the service runs. */
  onChange(listener: () => void): void;
}

/** @param retryAfterS when the next attempt may be worth it */
export function identityUnavailable(retryAfterS: number, cause: unknown): RequestError {
  return new RequestError(
    'identity_unavailable',
    'Access keys cannot be checked at the moment. The log of the service says why; its owner can put that right.',
    { headers: { 'retry-after': String(retryAfterS) }, cause },
  );
}
