/** Opens a socket to a relay, through a proxy where the environment names one. */
import { HttpsProxyAgent } from 'https-proxy-agent';
import { WebSocket } from 'ws';
import { MAX_FRAME_BYTES } from '../relay/wire/frame.ts';
import { findProxy, type ProxyEnvironment } from './proxy.ts';

const HANDSHAKE_MS = 15_000;

/** @throws if the url or the proxy's is none */
export function openWebSocket(url: string, protocol: string, environment: ProxyEnvironment): WebSocket {
  const proxy = findProxy(url, environment);
  return new WebSocket(url, protocol, {
    handshakeTimeout: HANDSHAKE_MS,
    perMessageDeflate: false,
    maxPayload: MAX_FRAME_BYTES,
    followRedirects: false,
    ...(proxy === undefined ? {} : { agent: new HttpsProxyAgent(proxy) }),
  });
}
