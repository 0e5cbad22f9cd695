/** A gateway and a device that were paired: what most tests of the channel begin with. */
import type { Crypto, DhKeyPair } from '../../channel/crypto.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { startSession } from '../../channel/initiator.ts';
import type { Psk } from '../../channel/keys.ts';
import { asPsk } from '../../channel/keys.ts';
import type { CallEvent, ReceivedCall } from '../../channel/received-call.ts';
import type { SessionLimits } from '../../channel/session-limits.ts';
import { SESSION_LIMITS } from '../../channel/session-limits.ts';
import { Responder } from '../../channel/responder.ts';
import { bytesToHex } from '@noble/hashes/utils.js';
import { node } from './watched-crypto.ts';

export interface Device {
  readonly staticKey: DhKeyPair;
  readonly psk: Psk;
}

export interface Gateway {
  readonly staticKey: DhKeyPair;
  readonly responder: Responder;
  /** Pairs a new device, or one whose key is given. */
  pair(staticKey?: DhKeyPair): Device;
  /** What revocation does to the device's row; the sessions are the responder's. */
  forget(device: Device): void;
}

export const HINTS = { clientVersion: 'test' };
/** When nothing is said about the time, it is this. */
export const NOW_MS = 1_800_000_000_000;

export function newKey(crypto: Crypto): DhKeyPair {
  return crypto.x25519(crypto.randomBytes(32));
}

export function newGateway(crypto: Crypto = node, limits: Partial<SessionLimits> = {}): Gateway {
  const psks = new Map<string, Psk>();
  const staticKey = newKey(crypto);
  const responder = new Responder({
    crypto,
    staticKey,
    findPsk: (remoteStaticKey) => psks.get(bytesToHex(remoteStaticKey)),
    boot: 'boot-1',
    maxBodyBytes: 1 << 20,
    limits: { ...SESSION_LIMITS, ...limits },
  });
  return {
    staticKey,
    responder,
    pair(deviceKey = newKey(crypto)) {
      const psk = asPsk(crypto.randomBytes(32));
      psks.set(bytesToHex(deviceKey.publicKey), psk);
      return { staticKey: deviceKey, psk };
    },
    forget: (device) => void psks.delete(bytesToHex(device.staticKey.publicKey)),
  };
}

export function sessionOptions(
  gateway: Gateway,
  device: Device,
  crypto: Crypto = node,
): Parameters<typeof startSession>[0] {
  return {
    crypto,
    purpose: { kind: 'session' },
    staticKey: device.staticKey,
    remoteStaticKey: gateway.staticKey.publicKey,
    psk: device.psk,
    hints: HINTS,
  };
}

/** A whole handshake. */
export function newSession(gateway: Gateway, device: Device, nowMs = NOW_MS): InitiatorSession {
  const started = startSession(sessionOptions(gateway, device));
  return started.finish(gateway.responder.answerSession(started.message1, nowMs), nowMs);
}

export function bytes(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

export const text = (content: string): Uint8Array => new TextEncoder().encode(content);

/** The header and the records of a request. */
export function sealRequest(session: InitiatorSession, body = 'body', nowMs = NOW_MS): SealedRequest {
  const call = session.openCall(nowMs);
  if (call === undefined) throw new Error('the session takes no more calls');
  const records = [call.request.sealHead(text('head')), call.request.sealData(text(body), { last: true })];
  return { call, records, wire: bytes(call.header, ...records) };
}

export interface SealedRequest {
  readonly call: NonNullable<ReturnType<InitiatorSession['openCall']>>;
  readonly records: readonly Uint8Array[];
  readonly wire: Uint8Array;
}

/** Delivers a whole request and gives all its events. */
export function deliver(gateway: Gateway, wire: Uint8Array, nowMs = NOW_MS): CallEvent[] {
  return pushAll(gateway.responder.receiveCall('session'), wire, nowMs);
}

/** Pushes all bytes and ends the stream. */
export function pushAll(call: ReceivedCall, wire: Uint8Array, nowMs = NOW_MS): CallEvent[] {
  const events = [...call.push(wire, nowMs)];
  call.end();
  return events;
}

/** The answer that the head of a call opened. */
export function answerOf(events: readonly CallEvent[]): Extract<CallEvent, { type: 'head' }>['answer'] {
  const head = events.find((event) => event.type === 'head');
  if (head?.type !== 'head') throw new Error('no head came');
  return head.answer;
}

/** The code of the ChannelError that `action` throws. Anything else is thrown on. */
export function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    if (error instanceof Error && error.name === 'ChannelError' && 'code' in error) return String(error.code);
    throw error;
  }
  return 'accepted';
}
