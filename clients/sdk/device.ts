/** What a device keeps of a gateway that it was paired with: enough to come back, from anywhere that leads there. */
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import { utf8ToBytes } from '../../channel/bytes.ts';
import type { Crypto, DhKeyPair } from '../../channel/crypto.ts';
import { findJsonObject } from '../../channel/json.ts';
import type { Psk, PublicKey } from '../../channel/keys.ts';
import { asPsk, asPublicKey, KEY_BYTES } from '../../channel/keys.ts';
import type { InviteRelay } from '../../identity/invite-code.ts';

type DeviceRelay = Pick<InviteRelay, 'origin'> & { readonly rid: string };

export function shownRelays(relays: readonly InviteRelay[]): readonly DeviceRelay[] {
  return relays.map(({ origin, routingId }) => ({ origin, rid: formatBase64url(routingId) }));
}

/** All of it is secret; it is for the platform's credential store. Byte strings are base64url, so that it is JSON. */
export interface PairedDevice {
  readonly version: 1;
  readonly deviceId: string;
  /** cs, the secret half of the device's static key. It never leaves the device. */
  readonly deviceKey: string;
  /** GS, which the invite vouched for. */
  readonly gatewayKey: string;
  readonly psk: string;
  readonly gatewayName: string;
  /** See `formatGatewayId`. */
  readonly gatewayId: string;
  /** Tried in this order. */
  readonly urls: readonly string[];
  readonly relays: readonly DeviceRelay[];
  /** For clients that can't use the channel, where the owner wanted a key made for them. */
  readonly bearerKey?: string;
}

/** A device from the text that it was stored as; `undefined` if it is none, or of a later version. */
export function findPairedDevice(text: string): PairedDevice | undefined {
  const json = findJsonObject(utf8ToBytes(text));
  const { version, deviceId, deviceKey, gatewayKey, psk, gatewayName, gatewayId, urls, relays, bearerKey } = json ?? {};
  if (version !== 1 || !isKeyText(deviceKey) || !isKeyText(gatewayKey) || !isKeyText(psk)) return undefined;
  if (!isText(deviceId) || !isText(gatewayName) || !isText(gatewayId)) return undefined;
  if (!Array.isArray(urls) || !urls.every(isText) || !Array.isArray(relays) || !relays.every(isRelay)) return undefined;
  if (bearerKey !== undefined && !isText(bearerKey)) return undefined;
  const keys = { deviceKey, gatewayKey, psk };
  return {
    version,
    deviceId,
    ...keys,
    gatewayName,
    gatewayId,
    urls,
    relays,
    ...(bearerKey === undefined ? {} : { bearerKey }),
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isKeyText(value: unknown): value is string {
  return isText(value) && findBase64url(value)?.length === KEY_BYTES;
}

function isRelay(value: unknown): value is DeviceRelay {
  return (
    typeof value === 'object' &&
    value !== null &&
    'origin' in value &&
    'rid' in value &&
    isText(value.origin) &&
    isText(value.rid)
  );
}

/** What a handshake takes of them. */
interface DeviceKeys {
  readonly staticKey: DhKeyPair;
  readonly remoteStaticKey: PublicKey;
  readonly psk: Psk;
}

/** @throws RangeError for a key that is none */
export function keysOf(crypto: Crypto, { deviceKey, gatewayKey, psk }: PairedDevice): DeviceKeys {
  return {
    staticKey: crypto.x25519(asPsk(bytesOf(deviceKey))),
    remoteStaticKey: asPublicKey(bytesOf(gatewayKey)),
    psk: asPsk(bytesOf(psk)),
  };
}

function bytesOf(text: string): Uint8Array {
  return findBase64url(text) ?? new Uint8Array(0);
}
