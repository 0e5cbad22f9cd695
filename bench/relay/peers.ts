/** Peers of a relay that speak its frames by hand, as cheaply as they can: it is the relay that is measured. */
import { generateKeyPairSync, sign, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { WebSocket } from 'ws';
import { routingIdOf } from '../../relay/routing-id.ts';
import { decodeFrame, encodeFrame, SUBPROTOCOL, type Allowance, type Frame } from '../../relay/wire/frame.ts';
import { registrationMessage } from '../../relay/wire/registration.ts';

export interface GatewayKey {
  readonly publicKey: Uint8Array;
  readonly secret: KeyObject;
}

export function makeGatewayKey(): GatewayKey {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  return { publicKey: publicKey.export({ format: 'der', type: 'spki' }).subarray(12), secret: privateKey };
}

export function openSocket(url: string): WebSocket {
  return new WebSocket(url, SUBPROTOCOL, { perMessageDeflate: false });
}

/** Waits for the first frame of a type. What else comes meanwhile is passed over. */
export function nextFrame<Type extends Frame['type']>(
  socket: WebSocket,
  type: Type,
): Promise<Extract<Frame, { type: Type }>> {
  return new Promise((resolve, reject) => {
    const over = (): void => {
      socket.off('message', onMessage);
      socket.off('close', onClose);
      socket.off('error', onError);
    };
    const onClose = (): void => reject(new Error('closed'));
    const onError = (error: Error): void => reject(error);
    const onMessage = (data: Buffer): void => {
      const frame = decodeFrame(data);
      if (frame.type === 'error') reject(new Error(`refused: ${frame.code}`));
      if (frame.type !== type) return;
      over();
      resolve(frame as Extract<Frame, { type: Type }>);
    };
    socket.on('message', onMessage);
    socket.on('close', onClose);
    socket.on('error', onError);
  });
}

export async function registerGateway(
  socket: WebSocket,
  { origin, key, allowance }: { origin: string; key: GatewayKey; allowance: Omit<Allowance, 'expiresAtMinute'> },
): Promise<Uint8Array> {
  const { nonce } = await nextFrame(socket, 'hello');
  const registration = { publicKey: key.publicKey, epoch: Date.now(), caps: 0, admission: new Uint8Array(0) };
  const signature = sign(null, registrationMessage({ origin, nonce }, registration), key.secret);
  socket.send(encodeFrame({ type: 'register', signature, ...registration }));
  await nextFrame(socket, 'registered');
  socket.send(encodeFrame({ type: 'allow', allowances: [{ ...allowance, expiresAtMinute: 0xffff_ffff }] }));
  return routingIdOf(key.publicKey);
}

export async function joinGateway(url: string, routingId: Uint8Array, tag: Uint8Array): Promise<WebSocket> {
  const socket = openSocket(url);
  await nextFrame(socket, 'hello');
  socket.send(encodeFrame({ type: 'join', routingId, tag }));
  await nextFrame(socket, 'joined');
  return socket;
}

export async function opened(url: string): Promise<WebSocket> {
  const socket = openSocket(url);
  await once(socket, 'open');
  return socket;
}
