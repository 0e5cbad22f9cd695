/** How this gateway names itself to a device, and where the device finds it. */
import { hostname } from 'node:os';
import { isLabel } from '../identity/access-claims.ts';
import { gatewayFingerprint } from '../identity/gateway-name.ts';
import { MAX_INVITE_URLS } from '../identity/invite-code.ts';
import type { GatewayFacts } from '../identity/node/device-registry.ts';
import type { GatewayKey } from '../identity/secret-keys.ts';
import { reachableUrls } from './addresses.ts';

interface Listening {
  readonly port: number;
  /** On all interfaces. */
  readonly isExposed: boolean;
}

/** Asked anew for each device: a laptop's addresses change while it serves. */
export function gatewayFacts(gatewayKey: GatewayKey, { port, isExposed }: Listening): GatewayFacts {
  const name = hostname();
  const outside = isExposed ? reachableUrls(port).slice(0, MAX_INVITE_URLS) : [];
  return {
    gatewayName: isLabel(name) ? name : 'Postern',
    gatewayId: gatewayFingerprint(gatewayKey),
    relays: [],
    // Of use to this machine alone, where a second SVC_HOME can be paired with it.
    urls: outside.length > 0 ? outside : [`http://127.0.0.1:${port}`],
  };
}
