/**
 * A device that does exactly what a test tells it to, well-behaved or not: the channel's own client over plain requests,
 * without any of the SDK's good sense.
 */
import { once } from 'node:events';
import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { AnswerEvent } from '../../channel/answer-reader.ts';
import { concatBytes } from '../../channel/bytes.ts';
import type { Crypto, DhKeyPair } from '../../channel/crypto.ts';
import { decodeEnvelope, encodeEnvelope } from '../../channel/envelope.ts';
import {
  decodeAbortReason,
  decodeAnswerHead,
  encodeRequestHead,
  type AbortReason,
  type AnswerHead,
  type RequestHead,
} from '../../channel/head.ts';
import { startSession, type InitiatorSession, type OutgoingCall } from '../../channel/initiator.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import type { PublicKey } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import {
  CONFIRM_PATH,
  encodeDeviceDescription,
  findPairingGrant,
  type DeviceDescription,
  type PairingGrant,
} from '../../identity/pairing.ts';

const node = gatewayCrypto('node');

const HINTS = { clientVersion: 'raw' };

export const newStaticKey = (): DhKeyPair => node.x25519(node.randomBytes(32));
export const newIdempotencyKey = (): Uint8Array => node.randomBytes(16);

export interface RawAnswer {
  /** Of the outer answer. */
  readonly outerStatus: number;
  readonly hint?: number;
  readonly head?: AnswerHead;
  readonly body: Uint8Array;
  readonly abort?: AbortReason;
  /** What the reader threw, if so. */
  readonly error?: string;
}

let lastAddress = 0;
/** Each a client of its own to the gateway's limits. */
function nextAddress(): string {
  lastAddress += 1;
  return `127.1.${lastAddress >> 8}.${lastAddress & 255}`;
}

/** Sends an envelope, from an address of its own unless one is given, and resolves with the beginning of the answer. */
export function post(url: string, body: Uint8Array | undefined, from = nextAddress()): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/octet-stream' };
    const asked = httpRequest(url, { method: 'POST', headers, localAddress: from, agent: false }, resolve);
    asked.on('error', reject);
    if (body === undefined) asked.flushHeaders();
    else asked.end(body);
  });
}

/** Sends pieces of a body and not its end. Resolves when the other side has taken them, but for what is in its socket. */
export async function sendPieces(url: string, pieces: Iterable<Uint8Array>): Promise<ClientRequest> {
  const headers = { 'content-type': 'application/octet-stream' };
  const asked = httpRequest(url, { method: 'POST', headers, localAddress: nextAddress(), agent: false });
  asked.on('error', () => undefined);
  for (const piece of pieces) {
    if (!asked.write(piece)) await once(asked, 'drain');
  }
  return asked;
}

/** @returns the answer's envelope, with the status it came with */
export async function exchange(
  url: string,
  body: Uint8Array,
  from?: string,
): Promise<{ readonly status: number; readonly bytes: Uint8Array }> {
  const response = await post(url, body, from);
  return { status: response.statusCode ?? 0, bytes: new Uint8Array(await buffer(response)) };
}

export async function startPairing(
  url: string,
  code: InviteCode,
  staticKey: DhKeyPair,
  from?: string,
): Promise<{ readonly status: number; readonly session?: InitiatorSession; readonly hint?: number }> {
  const { inviteId, psk } = deriveInviteKeys(node, code.secret);
  const purpose = { kind: 'invite', inviteId } as const;
  const started = startSession({
    crypto: node,
    purpose,
    staticKey,
    remoteStaticKey: code.gatewayKey,
    psk,
    hints: HINTS,
  });
  const asked = encodeEnvelope({ kind: 'inviteRequest', inviteId, noise: started.message1 });
  const { status, bytes } = await exchange(`${url}/pair-invite`, asked, from);
  const envelope = decodeEnvelope(bytes);
  if (envelope.kind === 'hint') return { status, hint: envelope.code };
  if (envelope.kind !== 'inviteAnswer') throw new Error(`answered with ${envelope.kind}`);
  return { status, session: started.finish(envelope.noise, Date.now()) };
}

export const rawDescription: DeviceDescription = { name: 'raw device', platform: 'test' };

/** The sealed call that confirms a pairing by an invite. */
export function confirmPairing(
  url: string,
  session: InitiatorSession,
  description = rawDescription,
): Promise<RawAnswer> {
  return confirmAt(`${url}/pair-invite`, session, description);
}

/** The same at the address of either way of pairing. */
export function confirmAt(
  address: string,
  session: InitiatorSession,
  description: DeviceDescription,
): Promise<RawAnswer> {
  const body = encodeDeviceDescription(description);
  const head = {
    method: 'POST',
    path: CONFIRM_PATH,
    headers: [],
    bodyBytes: body.length,
    idempotencyKey: newIdempotencyKey(),
  };
  return sendCall(address, session, { head, body });
}

export interface PairedRaw {
  readonly staticKey: DhKeyPair;
  readonly gatewayKey: PublicKey;
  readonly grant: PairingGrant;
}

/** What a handshake takes. */
export interface RawKeys extends Pick<PairedRaw, 'staticKey' | 'gatewayKey'> {
  readonly grant: Pick<PairingGrant, 'psk'>;
}

export async function pairRaw(url: string, code: InviteCode, staticKey = newStaticKey()): Promise<PairedRaw> {
  const { session } = await startPairing(url, code, staticKey);
  if (session === undefined) throw new Error('the pairing handshake was refused');
  const answer = await confirmPairing(url, session);
  const grant = findPairingGrant(answer.body);
  if (grant === undefined) throw new Error(`not paired: ${answer.head?.status} ${Buffer.from(answer.body).toString()}`);
  return { staticKey, gatewayKey: code.gatewayKey, grant };
}

export async function startRawSession(
  url: string,
  { staticKey, gatewayKey, grant }: RawKeys,
  { crypto = node, from }: { readonly crypto?: Crypto; readonly from?: string } = {},
): Promise<{ readonly status: number; readonly session?: InitiatorSession; readonly hint?: number }> {
  const purpose = { kind: 'session' } as const;
  const { psk } = grant;
  const started = startSession({ crypto, purpose, staticKey, remoteStaticKey: gatewayKey, psk, hints: HINTS });
  const asked = encodeEnvelope({ kind: 'sessionRequest', noise: started.message1 });
  const { status, bytes } = await exchange(`${url}/secure/session`, asked, from);
  const envelope = decodeEnvelope(bytes);
  if (envelope.kind === 'hint') return { status, hint: envelope.code };
  if (envelope.kind !== 'sessionAnswer') throw new Error(`answered with ${envelope.kind}`);
  return { status, session: started.finish(envelope.noise, Date.now()) };
}

export async function rawSession(url: string, device: PairedRaw): Promise<InitiatorSession> {
  const { session, status } = await startRawSession(url, device);
  if (session === undefined) throw new Error(`the handshake was refused: ${status}`);
  return session;
}

export interface RawRequest {
  readonly head: RequestHead;
  readonly body?: Uint8Array;
}

/** A request to a route; what changes something gets an idempotency key. */
export function request(
  method: string,
  path: string,
  more: Partial<RequestHead> & { json?: unknown } = {},
): RawRequest {
  const { json, ...head } = more;
  const body = json === undefined ? new Uint8Array() : new TextEncoder().encode(JSON.stringify(json));
  const headers = json === undefined ? [] : [['content-type', 'application/json'] as const];
  const key = method === 'GET' || method === 'HEAD' ? {} : { idempotencyKey: newIdempotencyKey() };
  return { head: { method, path, headers, bodyBytes: body.length, ...key, ...head }, body };
}

/** The bytes of a whole request. */
export function sealCall(call: OutgoingCall, { head, body = new Uint8Array() }: RawRequest): Uint8Array {
  const isEmpty = body.length === 0;
  const sealedHead = call.request.sealHead(encodeRequestHead(head), { last: isEmpty });
  return concatBytes(call.header, sealedHead, ...(isEmpty ? [] : call.request.sealBody(body)));
}

export function openCall(session: InitiatorSession): OutgoingCall {
  const call = session.openCall(Date.now());
  if (call === undefined) throw new Error('the session takes no more calls');
  return call;
}

export async function sendCall(
  url: string,
  session: InitiatorSession,
  asked: RawRequest,
  from?: string,
): Promise<RawAnswer> {
  const call = openCall(session);
  const { status, bytes } = await exchange(url, sealCall(call, asked), from);
  return { outerStatus: status, ...readAnswer(call, bytes) };
}

/** A call whose answer is read as it comes. */
export interface RunningCall {
  readonly call: OutgoingCall;
  /** The outer answer, which the test may stop reading, or cut. */
  readonly response: IncomingMessage;
  /** Events so far that nobody has taken, then those to come. Ends with the transport. */
  readonly events: AsyncGenerator<AnswerEvent>;
}

export async function startCall(url: string, session: InitiatorSession, asked: RawRequest): Promise<RunningCall> {
  const call = openCall(session);
  const response = await post(url, sealCall(call, asked));
  async function* read(): AsyncGenerator<AnswerEvent> {
    for await (const piece of response as AsyncIterable<Buffer>) yield* [...call.answer.push(piece)];
    call.answer.end();
  }
  return { call, response, events: read() };
}

/** What an answer's bytes say. */
export function readAnswer(call: OutgoingCall, bytes: Uint8Array): Omit<RawAnswer, 'outerStatus'> {
  const events: AnswerEvent[] = [];
  let error: string | undefined;
  try {
    for (const event of call.answer.push(bytes)) events.push(event);
    call.answer.end();
  } catch (thrown) {
    error = thrown instanceof Error ? thrown.message : String(thrown);
  }
  const found: { hint?: number; head?: AnswerHead; abort?: AbortReason } = {};
  const data: Uint8Array[] = [];
  for (const event of events) {
    if (event.type === 'hint') found.hint = event.code;
    if (event.type === 'head') found.head = decodeAnswerHead(event.data);
    if (event.type === 'data') data.push(event.data);
    if (event.type === 'abort') found.abort = decodeAbortReason(event.data);
  }
  return { ...found, body: concatBytes(...data), ...(error === undefined ? {} : { error }) };
}

export const textOf = ({ body }: Pick<RawAnswer, 'body'>): string => Buffer.from(body).toString();
