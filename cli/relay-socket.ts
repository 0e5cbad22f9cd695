/** How a device that is this machine gets to a relay: through a proxy, where the environment names one. */
import type { RelayOptions, WebSocketLike } from '../clients/sdk/relay.ts';
import type { ProxyEnvironment } from '../relay-client/proxy.ts';
import { openWebSocket } from '../relay-client/web-socket.ts';

/** A relay that is dead never answers the close frame, and `ws` would wait half a minute for that. */
const CLOSING_MS = 1000;

export function relaySocket(environment: ProxyEnvironment): NonNullable<RelayOptions['webSocket']> {
  return (url, protocol): WebSocketLike => {
    const socket = openWebSocket(url, protocol, environment);
    const close = socket.close.bind(socket);
    return Object.assign(socket, {
      close() {
        close();
        setTimeout(() => socket.terminate(), CLOSING_MS).unref();
      },
    });
  };
}
