/** A device's way home through a relay, an entry of its own: transports for `connect` and `pair`. */
import { findBase64url } from '../../channel/base64url.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import type { RoutingId } from '../../channel/keys.ts';
import { asRoutingId, ROUTING_ID_BYTES } from '../../channel/keys.ts';
import { deriveRelayTag, tagDay } from '../../channel/relay-tag.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import type { WebSocketLike } from '../../relay/wire/join-relay.ts';
import type { PairedDevice } from './device.ts';
import { keysOf } from './device.ts';
import { describeInvite } from './invite.ts';
import type { Platform } from './platform.ts';
import { platformOf } from './platform.ts';
import { relayTransport } from './relay-transport.ts';
import type { Transport } from './transport.ts';

export type { WebSocketLike } from '../../relay/wire/join-relay.ts';

export interface RelayOptions extends Partial<Platform> {
  /** Opens a socket; by default the platform's own `WebSocket`. */
  readonly webSocket?: (url: string, protocol: string) => WebSocketLike;
}

/**
 * The relays that lead to a device's gateway, for `connect(device, { transports })`. Nothing is connected before it is
 * needed. @throws TypeError if there is a relay and no WebSocket; RangeError if the device's record is damaged
 */
export function relaysOf(device: PairedDevice, options: RelayOptions = {}): readonly Transport[] {
  const platform = platformOf(options);
  const { psk } = keysOf(platform.crypto, device);
  return device.relays.flatMap(({ origin, rid }) => {
    const routingId = findRoutingId(rid);
    if (routingId === undefined) return [];
    const tag = (): Uint8Array => deriveRelayTag(platform.crypto, psk, { routingId, day: tagDay(platform.now()) });
    return routeOf({ origin, routingId }, tag, platform, options);
  });
}

/**
 * The relay that an invite names, for `pair(invite, { transports })`; none if it names none.
 * @throws PosternError `invite_unreadable`; TypeError if there is a relay and no WebSocket
 */
export function relayOfInvite(invite: string | InviteCode, options: RelayOptions = {}): readonly Transport[] {
  const platform = platformOf(options);
  const { secret, relay } = describeInvite(invite, platform).code;
  if (relay === undefined) return [];
  const tag = deriveInviteKeys(platform.crypto, secret).relayTag(relay.routingId);
  return routeOf(relay, () => tag, platform, options);
}

function findRoutingId(text: string): RoutingId | undefined {
  const bytes = findBase64url(text);
  return bytes?.length === ROUTING_ID_BYTES ? asRoutingId(bytes) : undefined;
}

/** None for what is no address of a relay: a record or a code may hold any text. */
function routeOf(
  { origin, routingId }: { readonly origin: string; readonly routingId: RoutingId },
  tag: () => Uint8Array,
  platform: Platform,
  options: RelayOptions,
): readonly Transport[] {
  if (!/^wss?:$/u.test(URL.canParse(origin) ? new URL(origin).protocol : '')) return [];
  return [
    relayTransport({ platform, webSocket: options.webSocket ?? platformWebSocket(), url: origin, routingId, tag }),
  ];
}

function platformWebSocket(): NonNullable<RelayOptions['webSocket']> {
  if (typeof WebSocket !== 'undefined') return (url, protocol) => new WebSocket(url, protocol);
  throw new TypeError(
    'there is no WebSocket on this platform: pass one as `webSocket`, such as that of the package "ws"',
  );
}
