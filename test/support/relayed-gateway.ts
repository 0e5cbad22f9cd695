/** A gateway's end of the sealed channel behind a real tunnel to a real relay, with everything that comes through it. */
import { onTestFinished } from 'vitest';
import { WebSocket } from 'ws';
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import { asPsk, asRoutingId } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { deriveRelayTag, tagDay } from '../../channel/relay-tag.ts';
import type { PairedDevice } from '../../clients/sdk/index.ts';
import type { RelayOptions } from '../../clients/sdk/relay.ts';
import { relaysOf } from '../../clients/sdk/relay.ts';
import type { Transport } from '../../clients/sdk/transport.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import type { AllowedTag } from '../../relay-client/allow-list.ts';
import type { TunnelStream } from '../../relay-client/tunnel-stream.ts';
import type { RelayLimits } from '../../relay/limits.ts';
import { OP } from '../../relay/wire/op.ts';
import { collect, connectedTunnel, makeRelayKey, startTestRelay, type TestRelay } from './relay-here.ts';
import { start } from './sealed-client.ts';
import type { Handler, SealedGateway, SealedGatewayOptions } from './sealed-gateway.ts';
import { until } from './wait.ts';

const crypto = gatewayCrypto('node');
const DAY_MS = 86_400_000;

export interface RelayedGateway {
  readonly gateway: SealedGateway;
  readonly relay: TestRelay;
  /** What came through the relay, in order. */
  readonly streams: readonly TunnelStream[];
  /** Paired, and let through. By default it knows no other way. */
  readonly device: PairedDevice;
  /** Let through for pairing. It names no other way. */
  readonly invite: InviteCode;
  /** Ends the relay at once, with all that goes through it. */
  killRelay(): Promise<void>;
  /** Another one at the same address, to which the gateway is connected when this resolves. */
  restartRelay(): Promise<void>;
  /** The gateway leaves the relay. */
  leaveRelay(): Promise<void>;
}

/** Without compression: what crosses the relay is sealed. */
export const webSocket: NonNullable<RelayOptions['webSocket']> = (url, protocol) =>
  new WebSocket(url, protocol, { perMessageDeflate: false });

export function relaysFor(device: PairedDevice, options: RelayOptions = {}): readonly Transport[] {
  const transports = relaysOf(device, { webSocket, ...options });
  onTestFinished(() => transports.forEach((transport) => transport.close?.()));
  return transports;
}

/** Until the test ends. */
export async function startRelayed(
  handle: Handler,
  { limits = {}, ...options }: SealedGatewayOptions & { readonly limits?: Partial<RelayLimits> } = {},
): Promise<RelayedGateway> {
  const gateway = await start(handle, options);
  const key = makeRelayKey();
  let relay = await startTestRelay(limits);
  onTestFinished(() => relay.close());
  const { origin, port } = relay;
  const routingId = asRoutingId(key.routingId);
  const device = { ...gateway.newDevice([]), relays: [{ origin, rid: formatBase64url(routingId) }] };
  const invite = gateway.newInvite({ urls: [], relay: { origin, routingId } });
  const streams: TunnelStream[] = [];
  const tunnel = await connectedTunnel(origin, {
    key,
    tags: () => tagsOf(device, invite),
    onStream(stream) {
      streams.push(stream);
      return stream.answer(answered(stream, gateway.url)).catch(() => undefined);
    },
  });
  onTestFinished(() => tunnel.close());
  return {
    gateway,
    get relay() {
      return relay;
    },
    streams,
    device,
    invite,
    killRelay: () => relay.close(),
    async restartRelay() {
      relay = await startTestRelay(limits, { port });
      await until(() => (tunnel.retryNow(), tunnel.state().phase === 'connected'));
    },
    leaveRelay: () => tunnel.close(),
  };
}

function tagsOf({ psk, relays: [relay] }: PairedDevice, invite: InviteCode): AllowedTag[] {
  const routingId = asRoutingId(findBase64url(relay!.rid)!);
  const expiresAtMs = Date.now() + DAY_MS;
  const context = { routingId, day: tagDay(Date.now()) };
  const ofDevice = deriveRelayTag(crypto, asPsk(findBase64url(psk)!), context);
  const ofInvite = deriveInviteKeys(crypto, invite.secret).relayTag(routingId);
  return [
    { tag: ofDevice, expiresAtMs, tagClass: 'device' },
    { tag: ofInvite, expiresAtMs, tagClass: 'pairing' },
  ];
}

const PLACES: ReadonlyMap<number, readonly string[]> = new Map([
  [OP.session, ['/secure/session']],
  // Nothing outside says of which kind its session is.
  [OP.call, ['/secure/call', '/pair-invite']],
  [OP.invite, ['/pair-invite']],
]);

/** As the gateway answers over HTTP; only as fast as it is read. */
async function* answered({ op, bytes, signal }: TunnelStream, url: string): AsyncGenerator<Uint8Array> {
  const body = await collect(bytes);
  const places = PLACES.get(op) ?? [];
  for (const [at, place] of places.entries()) {
    const response = await fetch(url + place, { method: 'POST', body, signal });
    const pieces = response.body![Symbol.asyncIterator]();
    const first = await pieces.next();
    const isHint = first.value?.[1] === 0x7f;
    if (isHint && at + 1 < places.length) continue;
    if (first.value !== undefined) yield first.value;
    for (let next = await pieces.next(); next.done !== true; next = await pieces.next()) yield next.value;
    return;
  }
}
