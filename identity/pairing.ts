/**
 * What a device and its gateway tell each other inside a pairing session, both as JSON: who the device says it is, and
 * what it gets. Sent to the inner path `/pair/confirm`. Later, in its sessions, it asks `/pair/home` where home is by now.
 */
import { findBase64url, formatBase64url } from '../channel/base64url.ts';
import { utf8ToBytes } from '../channel/bytes.ts';
import { findJsonObject } from '../channel/json.ts';
import type { Psk } from '../channel/keys.ts';
import { asPsk, asRoutingId, KEY_BYTES, ROUTING_ID_BYTES } from '../channel/keys.ts';
import { isLabel } from './access-claims.ts';
import type { InviteRelay } from './invite-code.ts';

export const CONFIRM_PATH = '/pair/confirm';
export const HOME_PATH = '/pair/home';

/** In its own words: a thief of an invite chooses these too. Each is a text that `isLabel` accepts. */
export interface DeviceDescription {
  readonly name: string;
  /** `linux`, `darwin`, `android`, a browser's name, … */
  readonly platform: string;
  readonly model?: string;
}

/** What a gateway calls itself, and where it is found. */
export interface GatewayFacts {
  readonly gatewayName: string;
  /** See `formatGatewayId`. */
  readonly gatewayId: string;
  readonly relays: readonly InviteRelay[];
  /** Where the gateway is in its own network, the likeliest first. */
  readonly urls: readonly string[];
}

/** What makes a device a paired one. */
export interface PairingGrant extends GatewayFacts {
  readonly deviceId: string;
  /** Proves the device in every later handshake, together with its static key. */
  readonly psk: Psk;
  /** The text of its access key, which counts inside its sealed calls and nowhere else. */
  readonly grant: string;
  /** A key for clients that can't use the channel, where the owner wanted one made. */
  readonly bearerKey?: string;
}

export function encodeDeviceDescription({ name, platform, model }: DeviceDescription): Uint8Array {
  return utf8ToBytes(JSON.stringify({ name, platform, model }));
}

export function findDeviceDescription(bytes: Uint8Array): DeviceDescription | undefined {
  const { name, platform, model } = findJsonObject(bytes) ?? {};
  if (!isLabelText(name) || !isLabelText(platform)) return undefined;
  if (model === undefined) return { name, platform };
  return isLabelText(model) ? { name, platform, model } : undefined;
}

function isLabelText(value: unknown): value is string {
  return typeof value === 'string' && isLabel(value);
}

export function encodePairingGrant({ psk, relays, ...rest }: PairingGrant): Uint8Array {
  return utf8ToBytes(JSON.stringify({ ...rest, psk: formatBase64url(psk), relays: relays.map(shownRelay) }));
}

export function encodeGatewayFacts({ gatewayName, gatewayId, relays, urls }: GatewayFacts): Uint8Array {
  return utf8ToBytes(JSON.stringify({ gatewayName, gatewayId, relays: relays.map(shownRelay), urls }));
}

function shownRelay({ origin, routingId }: InviteRelay): object {
  return { origin, rid: formatBase64url(routingId) };
}

export function findPairingGrant(bytes: Uint8Array): PairingGrant | undefined {
  const json = findJsonObject(bytes) ?? {};
  const { deviceId, psk, grant, bearerKey } = json;
  const facts = factsIn(json);
  const pskBytes = typeof psk === 'string' ? findBase64url(psk) : undefined;
  if (typeof deviceId !== 'string' || typeof grant !== 'string' || pskBytes?.length !== KEY_BYTES) return undefined;
  if (facts === undefined || (bearerKey !== undefined && typeof bearerKey !== 'string')) return undefined;
  return { deviceId, psk: asPsk(pskBytes), grant, ...(bearerKey === undefined ? {} : { bearerKey }), ...facts };
}

export function findGatewayFacts(bytes: Uint8Array): GatewayFacts | undefined {
  return factsIn(findJsonObject(bytes) ?? {});
}

function factsIn(json: Readonly<Record<string, unknown>>): GatewayFacts | undefined {
  const { gatewayName, gatewayId, relays, urls } = json;
  if (typeof gatewayName !== 'string' || typeof gatewayId !== 'string') return undefined;
  if (!Array.isArray(relays) || !Array.isArray(urls) || !urls.every((url) => typeof url === 'string')) return undefined;
  const known = relays.map(findRelay);
  if (!known.every((relay) => relay !== undefined)) return undefined;
  return { gatewayName, gatewayId, relays: known, urls };
}

function findRelay(value: unknown): InviteRelay | undefined {
  if (typeof value !== 'object' || value === null || !('origin' in value) || !('rid' in value)) return undefined;
  const { origin, rid } = value;
  const routingId = typeof rid === 'string' ? findBase64url(rid) : undefined;
  if (typeof origin !== 'string' || routingId?.length !== ROUTING_ID_BYTES) return undefined;
  return { origin, routingId: asRoutingId(routingId) };
}
