/** How a device that is this machine gets to a relay: through a proxy, where the environment names one. */
import type { RelayOptions } from '../clients/sdk/relay.ts';
import type { ProxyEnvironment } from '../relay-client/proxy.ts';
import { openWebSocket } from '../relay-client/web-socket.ts';

export function relaySocket(environment: ProxyEnvironment): NonNullable<RelayOptions['webSocket']> {
  return (url, protocol) => openWebSocket(url, protocol, environment);
}
