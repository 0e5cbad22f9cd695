/**
 * A gateway's end of the sealed channel on a port of its own: the real responder, behind as little HTTP as it takes, and
 * in front of it somebody who can be told to cut, drop, forge and lose. A test double of the peer and of the way to it,
 * for what a real gateway never does.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { bytesToHex } from '@noble/hashes/utils.js';
import { formatBase64url } from '../../channel/base64url.ts';
import { concatBytes, EMPTY } from '../../channel/bytes.ts';
import { decodeEnvelope, encodeEnvelope } from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import { formatGatewayId, gatewayIdOf } from '../../channel/gateway-id.ts';
import type { CallHead, CallReference, HeaderList, RequestHead } from '../../channel/head.ts';
import { decodeCallHead, encodeAnswerHead } from '../../channel/head.ts';
import { hintOf } from '../../channel/hint.ts';
import { deriveInviteKeys } from '../../channel/invite.ts';
import type { Psk, PublicKey } from '../../channel/keys.ts';
import { asInviteSecret, asPsk } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import type { Answer, ReceivedCall } from '../../channel/received-call.ts';
import { Responder } from '../../channel/responder.ts';
import type { PairedDevice } from '../../clients/sdk/index.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import { encodePairingGrant, findDeviceDescription } from '../../identity/pairing.ts';

const crypto = gatewayCrypto('node');

export interface SealedRequest extends RequestHead {
  readonly body: Uint8Array;
  readonly signal: AbortSignal;
}

export interface SealedAnswer {
  readonly status?: number;
  readonly headers?: HeaderList;
  readonly body?: string | Uint8Array | AsyncIterable<string | Uint8Array>;
}

export type Handler = (request: SealedRequest) => SealedAnswer | Promise<SealedAnswer>;

type Operation = 'session' | 'call' | 'pair-invite';

/** What happens to one HTTP request on its way. */
export type Meddling =
  /** Never arrives. */
  | { readonly do: 'drop' }
  /** Arrives, and its answer is lost after so many bytes. */
  | { readonly do: 'cut'; readonly afterBytes: number }
  /** Arrives, and a hint comes instead of its answer. */
  | { readonly do: 'forge'; readonly hint: number }
  /** Never arrives, and a hint comes. */
  | { readonly do: 'refuse'; readonly hint: number }
  /** One bit of this byte of the answer is flipped. */
  | { readonly do: 'flip'; readonly at: number }
  /** The answer comes one byte at a time. */
  | { readonly do: 'crumble' }
  /** Arrives, and nothing is heard of it after so many bytes. */
  | { readonly do: 'mute'; readonly afterBytes: number }
  /** Something else answers. */
  | { readonly do: 'answer'; readonly bytes: Uint8Array };

interface StoredCall {
  readonly records: Uint8Array[];
  readonly stop: AbortController;
  readonly received: ReceivedCall;
  isDone: boolean;
  changed: () => void;
  change: Promise<void>;
}

export interface SealedGateway {
  readonly url: string;
  readonly gatewayId: string;
  /** What arrived, in order: `session`, `pair-invite`, `GET /v1/models`, `CANCEL`, `ATTACH 3`. */
  readonly seen: readonly string[];
  readonly requests: readonly SealedRequest[];
  /** The static keys that presented themselves for pairing, in hexadecimal. */
  readonly redeemers: readonly string[];
  newInvite(change?: Partial<InviteCode>): InviteCode;
  /** A device that needs no pairing. */
  newDevice(urls?: readonly string[]): PairedDevice;
  /** What happens to the next requests of this kind, one each; `undefined` lets one pass. */
  meddle(operation: Operation, ...next: readonly (Meddling | undefined)[]): void;
  /** Forgets records and idempotency keys, as a new process does. */
  restart(): void;
  /** Ends all answers with an ABORT. */
  endCalls(code: string): void;
  revokeAll(): void;
  close(): Promise<void>;
}

/** How the owner decides: `undefined` accepts. */
export type Decide = () => Promise<{ readonly status: number; readonly code: string } | undefined>;

export interface SealedGatewayOptions {
  readonly handle?: Handler;
  readonly decide?: Decide;
  readonly maxBodyBytes?: number;
  readonly keepsRecords?: boolean;
}

export async function startSealedGateway(options: SealedGatewayOptions = {}): Promise<SealedGateway> {
  const gateway = new TestGateway(options);
  await gateway.listen();
  return gateway;
}

class TestGateway implements SealedGateway {
  readonly seen: string[] = [];
  readonly requests: SealedRequest[] = [];
  readonly redeemers: string[] = [];
  readonly #options: SealedGatewayOptions;
  readonly #staticKey = crypto.x25519(crypto.randomBytes(32));
  readonly #psks = new Map<string, Psk>();
  readonly #grants = new Map<string, Uint8Array>();
  readonly #meddling: Record<Operation, (Meddling | undefined)[]> = { session: [], call: [], 'pair-invite': [] };
  #calls = new Map<string, StoredCall>();
  #firstCalls = new Map<string, CallReference>();
  #invite: InviteCode | undefined;
  #runs = 0;
  #responder: Responder;
  readonly #server = createServer((request, response) => void this.#serve(request, response));

  constructor(options: SealedGatewayOptions) {
    this.#options = options;
    this.#responder = this.#newResponder();
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get gatewayId(): string {
    return formatGatewayId(gatewayIdOf(crypto, this.#staticKey.publicKey));
  }

  newInvite(change: Partial<InviteCode> = {}): InviteCode {
    this.#invite = {
      gatewayKey: this.#staticKey.publicKey,
      secret: asInviteSecret(crypto.randomBytes(16)),
      expiresAtMinute: Math.floor(Date.now() / 60_000) + 10,
      needsApproval: false,
      isForOneAgent: false,
      urls: [this.url],
      ...change,
    };
    return this.#invite;
  }

  newDevice(urls = [this.url]): PairedDevice {
    const deviceKey = crypto.randomBytes(32);
    const psk = asPsk(crypto.randomBytes(32));
    this.#psks.set(bytesToHex(crypto.x25519(deviceKey).publicKey), psk);
    return {
      version: 1,
      deviceId: 'device-1',
      deviceKey: formatBase64url(deviceKey),
      gatewayKey: formatBase64url(this.#staticKey.publicKey),
      psk: formatBase64url(psk),
      gatewayName: 'test',
      gatewayId: this.gatewayId,
      urls,
      relays: [],
    };
  }

  meddle(operation: Operation, ...next: readonly (Meddling | undefined)[]): void {
    this.#meddling[operation].push(...next);
  }

  restart(): void {
    this.#responder = this.#newResponder();
    this.#calls = new Map();
    this.#firstCalls = new Map();
  }

  endCalls(code: string): void {
    for (const stored of this.#calls.values()) {
      const lastRecord = stored.received.kill({ code, message: code });
      if (lastRecord !== undefined) keep(stored, lastRecord, true);
    }
  }

  revokeAll(): void {
    this.#psks.clear();
    this.endCalls('revoked');
    this.restart();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #newResponder(): Responder {
    return new Responder({
      crypto,
      staticKey: this.#staticKey,
      findPsk: (key) => this.#psks.get(bytesToHex(key)),
      boot: `boot-${++this.#runs}`,
      maxBodyBytes: this.#options.maxBodyBytes ?? 1 << 25,
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.setHeader('access-control-allow-origin', '*');
    response.setHeader('access-control-allow-headers', 'Content-Type');
    response.setHeader('content-type', 'application/octet-stream');
    const operation = OPERATIONS[request.url ?? ''];
    if (request.method === 'OPTIONS' || operation === undefined) return void response.end();
    const meddling = this.#meddling[operation].shift();
    if (meddling?.do === 'drop') return void request.socket.destroy();
    if (meddling?.do === 'refuse') return void response.end(encodeEnvelope({ kind: 'hint', code: meddling.hint }));
    if (meddling?.do === 'answer') return void response.end(meddling.bytes);
    const body = concatBytes(...(await request.toArray()));
    const write = writer(response, meddling);
    try {
      await this.#answer(operation, body, write);
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error;
      write(encodeEnvelope({ kind: 'hint', code: hintOf(error.code) }));
    }
    if (meddling?.do !== 'mute') response.end();
  }

  async #answer(operation: Operation, body: Uint8Array, write: Write): Promise<void> {
    if (body[1] === CALL_REQUEST) return this.#receive(operation, body, write);
    const envelope = decodeEnvelope(body);
    this.seen.push(operation);
    if (envelope.kind === 'sessionRequest')
      return write(
        encodeEnvelope({ kind: 'sessionAnswer', noise: this.#responder.answerSession(envelope.noise, Date.now()) }),
      );
    if (envelope.kind !== 'inviteRequest' || this.#invite === undefined) throw new ChannelError('handshake_refused');
    const { inviteId, psk } = deriveInviteKeys(crypto, this.#invite.secret);
    if (bytesToHex(inviteId) !== bytesToHex(envelope.inviteId)) throw new ChannelError('handshake_refused');
    const pairing = { purpose: { kind: 'invite', inviteId }, psk } as const;
    write(
      encodeEnvelope({
        kind: 'inviteAnswer',
        noise: this.#responder.answerPairing(pairing, envelope.noise, Date.now()),
      }),
    );
  }

  async #receive(operation: Operation, wire: Uint8Array, write: Write): Promise<void> {
    const received = this.#responder.receiveCall(operation === 'call' ? 'session' : 'invite');
    const events = [...received.push(wire, Date.now())];
    received.end();
    const [first] = events;
    if (first?.type !== 'head') throw new ChannelError('malformed');
    const body = concatBytes(...events.map((event) => (event.type === 'data' ? event.data : EMPTY)));
    const sid = wire.slice(2, 18);
    const call = { sessionId: sid, callNumber: new DataView(wire.buffer, wire.byteOffset).getUint32(18) };
    const head = decodeCallHead(first.data);
    write(first.answer.header);
    if (operation === 'pair-invite') return this.#confirm(first.remoteStaticKey, body, first.answer, write);
    if (head.kind !== 'request') return this.#control(head, first.answer, write);
    return this.#dispatch(
      { call: call as CallReference, head: head.head, body, answer: first.answer, received },
      write,
    );
  }

  async #confirm(key: PublicKey, body: Uint8Array, answer: Answer, write: Write): Promise<void> {
    const redeemer = bytesToHex(key);
    this.redeemers.push(redeemer);
    this.seen.push(`confirm ${findDeviceDescription(body)?.name}`);
    const refusal = await this.#refusalOf(redeemer);
    if (refusal !== undefined) return write(sealJson(answer, refusal.status, { error: { code: refusal.code } }));
    const psk = asPsk(crypto.randomBytes(32));
    const grant = encodePairingGrant({
      deviceId: 'device-1',
      psk,
      grant: 'svc-access:test',
      gatewayName: 'test',
      gatewayId: 'made up',
      relays: [],
      urls: [this.url],
    });
    if (!this.#grants.has(redeemer)) this.#psks.set(redeemer, psk);
    if (!this.#grants.has(redeemer)) this.#grants.set(redeemer, grant);
    write(sealWhole(answer, 200, this.#grants.get(redeemer) ?? grant));
  }

  async #refusalOf(redeemer: string): Promise<{ readonly status: number; readonly code: string } | undefined> {
    if (this.#grants.has(redeemer)) return undefined;
    if (this.#grants.size > 0) return { status: 409, code: 'invite_used' };
    return this.#options.decide?.();
  }

  async #control(head: Exclude<CallHead, { kind: 'request' }>, answer: Answer, write: Write): Promise<void> {
    this.seen.push(head.kind === 'cancel' ? 'CANCEL' : `ATTACH ${head.nextIndex}`);
    const stored = this.#calls.get(nameOf(head.call));
    if (stored === undefined || this.#options.keepsRecords === false)
      return write(sealJson(answer, head.kind === 'cancel' ? 404 : 410, {}));
    if (head.kind === 'cancel') {
      stored.stop.abort();
      return write(
        answer.records.sealHead(encodeAnswerHead({ status: 204, headers: [], bodyBytes: 0 }), { last: true }),
      );
    }
    write(answer.records.sealHead(encodeAnswerHead({ status: 200, headers: [], bodyBytes: null })));
    for await (const record of follow(stored, head.nextIndex))
      for (let at = 0; at < record.length; at += 60_000)
        write(answer.records.sealData(record.subarray(at, at + 60_000), { padding: 'stream' }));
    write(answer.records.sealData(EMPTY, { last: true }));
  }

  async #dispatch(asked: Dispatched, write: Write): Promise<void> {
    const { call, head, body, answer, received } = asked;
    this.seen.push(`${head.method} ${head.path}`);
    const key = head.idempotencyKey === undefined ? undefined : formatBase64url(head.idempotencyKey);
    const first = key === undefined ? undefined : this.#firstCalls.get(key);
    if (first !== undefined) {
      const named = { sid: formatBase64url(first.sessionId), n: first.callNumber };
      return write(sealJson(answer, 409, { error: { code: 'already_dispatched' }, ...named }));
    }
    if (key !== undefined) this.#firstCalls.set(key, call);
    const stored = newStoredCall(received);
    this.#calls.set(nameOf(call), stored);
    const request = { ...head, body, signal: stored.stop.signal };
    this.requests.push(request);
    void this.#run(request, answer, stored);
    for await (const record of follow(stored, 0)) write(record);
  }

  async #run(request: SealedRequest, { records }: Answer, stored: StoredCall): Promise<void> {
    const { status = 200, headers = [], body = '' } = (await this.#options.handle?.(request)) ?? {};
    const seal = (record: () => Uint8Array, isLast = false): void => {
      if (!records.isDone) keep(stored, record(), isLast);
    };
    const isWhole = typeof body === 'string' || body instanceof Uint8Array;
    seal(() => records.sealHead(encodeAnswerHead({ status, headers, bodyBytes: null })));
    if (isWhole) for (const record of records.sealBody(bytesOf(body))) keep(stored, record, records.isDone);
    else {
      for await (const piece of body) {
        if (stored.stop.signal.aborted) break;
        seal(() => records.sealData(bytesOf(piece), { padding: 'stream' }));
      }
      seal(() => records.sealData(EMPTY, { last: true }), true);
    }
  }
}

interface Dispatched {
  readonly call: CallReference;
  readonly head: RequestHead;
  readonly body: Uint8Array;
  readonly answer: Answer;
  readonly received: ReceivedCall;
}

type Write = (bytes: Uint8Array) => void;

const CALL_REQUEST = 3;
const OPERATIONS: Readonly<Record<string, Operation>> = {
  '/secure/session': 'session',
  '/secure/call': 'call',
  '/pair-invite': 'pair-invite',
};

function writer(response: ServerResponse, meddling: Meddling | undefined): Write {
  let sent = 0;
  if (meddling?.do === 'forge') {
    response.end(encodeEnvelope({ kind: 'hint', code: meddling.hint }));
    return () => undefined;
  }
  return (bytes) => {
    const at = sent;
    sent += bytes.length;
    if (meddling?.do === 'crumble') for (const byte of bytes) response.write(Uint8Array.of(byte));
    else if (meddling?.do === 'cut' || meddling?.do === 'mute') {
      const left = bytes.subarray(0, Math.max(0, meddling.afterBytes - at));
      if (left.length > 0) response.write(left);
      if (meddling.do === 'cut' && sent >= meddling.afterBytes) setImmediate(() => response.destroy());
    } else response.write(flipped(bytes, meddling?.do === 'flip' ? meddling.at - at : -1));
  };
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  return bytes.map((byte, index) => (index === at ? byte ^ 1 : byte));
}

function newStoredCall(received: ReceivedCall): StoredCall {
  const stored: StoredCall = {
    records: [],
    stop: new AbortController(),
    received,
    isDone: false,
    changed: () => undefined,
    change: Promise.resolve(),
  };
  renew(stored);
  return stored;
}

function renew(stored: StoredCall): void {
  stored.change = new Promise((resolve) => {
    stored.changed = resolve;
  });
}

function keep(stored: StoredCall, record: Uint8Array, isLast: boolean): void {
  stored.records.push(record);
  stored.isDone ||= isLast;
  stored.changed();
  renew(stored);
}

/** What there is from an index on, and then what comes. */
async function* follow(stored: StoredCall, from: number): AsyncGenerator<Uint8Array> {
  for (let index = from; ;) {
    const record = stored.records[index];
    if (record !== undefined) {
      index++;
      yield record;
    } else if (stored.isDone) return;
    else await stored.change;
  }
}

function nameOf({ sessionId, callNumber }: CallReference): string {
  return `${formatBase64url(sessionId)}:${callNumber}`;
}

function bytesOf(content: string | Uint8Array): Uint8Array {
  return typeof content === 'string' ? new TextEncoder().encode(content) : content;
}

function sealJson(answer: Answer, status: number, json: object): Uint8Array {
  return sealWhole(answer, status, bytesOf(JSON.stringify(json)));
}

function sealWhole({ records }: Answer, status: number, body: Uint8Array): Uint8Array {
  const head = encodeAnswerHead({ status, headers: [['content-type', 'application/json']], bodyBytes: body.length });
  return concatBytes(records.sealHead(head), ...records.sealBody(body));
}
