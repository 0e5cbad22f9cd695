/** How this gateway names itself to a device, and where the device finds it. */
import { hostname } from 'node:os';
import { isLabel } from '../identity/access-claims.ts';
import { gatewayFingerprint } from '../identity/gateway-name.ts';
import { MAX_INVITE_URLS, type InviteRelay } from '../identity/invite-code.ts';
import type { GatewayFacts } from '../identity/pairing.ts';
import type { GatewayKey } from '../identity/secret-keys.ts';
import { reachableUrls } from './addresses.ts';

interface Listening {
  readonly port: number;
  /** What is listened on. */
  readonly hosts: readonly string[];
  readonly relays: readonly InviteRelay[];
}

/** Asked anew for each device: a laptop's addresses change while it serves. */
export function gatewayFacts(gatewayKey: GatewayKey, { port, hosts, relays }: Listening): GatewayFacts {
  const name = hostname();
  const outside = reachableUrls({ port, hosts }).slice(0, MAX_INVITE_URLS);
  return {
    gatewayName: isLabel(name) ? name : 'Postern',
    gatewayId: gatewayFingerprint(gatewayKey),
    relays: relays.map(({ origin, routingId }) => ({ origin, routingId })),
    // Of use to this machine alone, where a second SVC_HOME can be paired with it; elsewhere it is another machine's.
    urls: outside.length > 0 || relays.length > 0 ? outside : [`http://127.0.0.1:${port}`],
  };
}
