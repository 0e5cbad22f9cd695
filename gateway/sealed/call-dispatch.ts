/** What is done with a whole call: a pairing is confirmed, another call is stopped or taken up again, or a route runs. */
import { formatBase64url } from '../../channel/base64url.ts';
import { concatBytes } from '../../channel/bytes.ts';
import type { CallHead, CallReference, HeaderList, RequestHead } from '../../channel/head.ts';
import type { Database } from '../../storage/database.ts';
import type { SetTimer } from '../../core/timer.ts';
import type { DeviceRecord } from '../../identity/node/device-table.ts';
import { CONFIRM_PATH, encodeGatewayFacts, HOME_PATH } from '../../identity/pairing.ts';
import type { Pairings } from '../access-key-source.ts';
import { outwardError, RequestError } from '../errors.ts';
import type { AccessClass } from '../policy.ts';
import { openai } from '../wire/openai/dialect.ts';
import type { CallTable } from './call-table.ts';
import { createActions, type IdempotencyResult } from './idempotency.ts';
import { allowedHeaders, type InnerAnswer, type InnerRequest, type RunInner } from './inner-request.ts';
import type { CodePairingDesk } from './code-pairing-desk.ts';
import { createPairingDesk, type DeskOptions, type InvitePairing } from './invite-pairing.ts';
import type { SealedCall } from './sealed-call.ts';
import type { SealedRequest } from './sealed-request.ts';
import type { SealedSource } from './source.ts';
import { putBody, putStream, putWhole } from './stream-sealing.ts';

export interface DispatchOptions extends Pick<DeskOptions, 'approvals' | 'gatewayFacts'> {
  readonly pairings: Pairings;
  readonly discovery: Pick<CodePairingDesk, 'confirm'>;
  readonly database: Database;
  readonly run: RunInner;
  /** The access class of the route that is asked for; `undefined` where there is none. */
  readonly accessOf: (method: string, path: string) => AccessClass | undefined;
  readonly calls: Pick<CallTable, 'find' | 'memoryOf'>;
  /** How long a stream's output is collected. */
  readonly tickMs: number;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** Told of what went wrong on our side. */
  readonly onError: (error: unknown) => void;
}

export interface CallDispatch {
  /** Never rejects: whatever becomes of the call is in its answer. */
  run(call: SealedCall, request: SealedRequest, source: SealedSource): Promise<void>;
  /** The device was revoked. @throws what is no disk's fault */
  forget(deviceId: string): void;
}

const REVOKED = { code: 'revoked', message: 'this device was revoked' };
const CANCELLED = { code: 'cancelled', message: 'the device has cancelled this call' };
const FAILED = { code: 'internal_error', message: 'something went wrong inside the service; its log says more' };

export function createCallDispatch(options: DispatchOptions): CallDispatch {
  const dispatch = new Dispatch(options);
  return {
    async run(call, request, source) {
      try {
        await dispatch.answer(call, request, source);
      } catch (error) {
        fail(call, error, options.onError);
      }
    },
    forget: (deviceId) => dispatch.actions.forget(deviceId),
  };
}

function fail(call: SealedCall, error: unknown, onError: (error: unknown) => void): void {
  // Whoever ended it has said why.
  if (call.signal.aborted) return;
  const isForCaller = outwardError(error).code !== 'internal';
  if (!(error instanceof RequestError)) onError(error);
  if (isForCaller && !call.hasAnswer) return refuse(call, error);
  call.abort(FAILED);
}

class Dispatch {
  readonly actions;
  readonly #options: DispatchOptions;
  readonly #desk: InvitePairing;

  constructor(options: DispatchOptions) {
    this.#options = options;
    this.#desk = createPairingDesk({ ...options, ...options.pairings });
    this.actions = createActions({ ...options, onDiskFault: options.onError });
  }

  async answer(call: SealedCall, request: SealedRequest, source: SealedSource): Promise<void> {
    const { head } = request;
    if (call.purpose.kind !== 'session') return this.#confirm(call, request, source);
    if (head.kind === 'cancel') return this.#cancel(call, head.call);
    if (head.kind === 'attach') return this.#attach(call, head);
    // Looked up at this very moment: a device that was revoked while its request came in has no call any more.
    const device = this.#options.pairings.devices.findByKey(call.deviceKey);
    if (device === undefined) return call.abort(REVOKED);
    this.#options.pairings.devices.touch(device, source.transport);
    if (head.head.method === 'GET' && head.head.path === HOME_PATH) return this.#tellHome(call);
    return this.#route(call, {
      head: head.head,
      headers: allowedHeaders(head.head.headers),
      body: () => request.body(),
      digest: () => request.digest(),
      device,
      source,
    });
  }

  async #confirm(call: SealedCall, request: SealedRequest, source: SealedSource): Promise<void> {
    const { head } = request;
    if (head.kind !== 'request' || head.head.path !== CONFIRM_PATH) {
      throw new RequestError('forbidden', 'A pairing session is for pairing and nothing else.');
    }
    if (head.head.method !== 'POST') {
      throw new RequestError('method_not_allowed', 'This address takes POST.', { headers: { allow: 'POST' } });
    }
    if (head.head.idempotencyKey === undefined) throw keyMissing();
    const answer = await this.#pair(call, concatBytes(...request.body()), source);
    putWhole(call.log, { status: 200, headers: JSON_HEADERS }, answer);
  }

  async #pair({ purpose, deviceKey, signal }: SealedCall, body: Uint8Array, source: SealedSource): Promise<Uint8Array> {
    if (purpose.kind === 'invite') {
      return this.#desk.confirm({ inviteId: purpose.inviteId, deviceKey, body, source, signal });
    }
    if (purpose.kind === 'session') throw new TypeError('a session is not for pairing');
    return this.#options.discovery.confirm({ challenge: purpose.challenge, deviceKey, body });
  }

  /** For a device that was paired when home was elsewhere, or had no relay. */
  #tellHome({ log }: SealedCall): void {
    const { gatewayFacts, pairings } = this.#options;
    putWhole(log, { status: 200, headers: JSON_HEADERS }, encodeGatewayFacts(gatewayFacts(pairings.gatewayKey())));
  }

  #cancel(call: SealedCall, reference: CallReference): void {
    const target = this.#options.calls.find(reference, call.deviceKey);
    if (target === undefined || target.log.isOver) {
      throw new RequestError('not_found', 'This device has no such call in flight.');
    }
    target.abort(CANCELLED);
    putWhole(call.log, { status: 204, headers: [] }, new Uint8Array());
  }

  async #attach(
    call: SealedCall,
    { call: reference, nextIndex }: Extract<CallHead, { kind: 'attach' }>,
  ): Promise<void> {
    const target = this.#options.calls.find(reference, call.deviceKey);
    // If this way breaks too, the next one reads from the same records.
    call.unreadTimeoutMs = 0;
    // One that reads from itself, or from one that reads from it, would never end.
    const pieces =
      target?.canBeAttached === true
        ? target.answerAgain({ gone: call.signal, cut: () => call.abort(REVOKED) }, nextIndex)
        : undefined;
    if (pieces === undefined) {
      throw new RequestError('records_gone', 'The rest of this answer is not kept any more.');
    }
    const head = { status: 200, headers: [['content-type', 'application/octet-stream']] as const, bodyBytes: null };
    await putStream(call.log, { head, body: pieces }, { ...this.#options, tickMs: 0 });
  }

  async #route(call: SealedCall, request: OpenedRequest): Promise<void> {
    const { head, headers, device, source } = request;
    const { body, fault } = this.#admit(call, request);
    call.canBeAttached = true;
    call.isKept = fault === undefined && !isSafe(head);
    const { scope, kid } = device;
    const inner = await this.#options.run(
      { ...head, headers, body, fault, signal: call.signal },
      { transport: source.transport, sealed: true, credential: 'device', scope, keyId: kid },
    );
    const answerHead = { status: inner.status, headers: inner.headers, bodyBytes: inner.bodyBytes };
    if (head.method === 'HEAD') return putWhole(call.log, answerHead, new Uint8Array());
    if (!isStream(inner)) return putBody(call.log, answerHead, inner.body);
    call.isKept = true;
    return putStream(call.log, { head: answerHead, body: inner.body }, this.#options);
  }

  /**
   * The body of a request that is acted on, or why it is not: the pipeline says so, and records it.
   * @throws {AlreadyDispatched} for a repeat, which is no other request
   */
  #admit(call: SealedCall, { head, body, digest, device }: OpenedRequest): Pick<InnerRequest, 'body' | 'fault'> {
    try {
      const whole = body();
      if (this.#options.calls.memoryOf(call.deviceKey).isScarce()) throw tooMuchUnread();
      if (!isSafe(head)) this.#begin(call, { head, digest, device });
      return { body: whole };
    } catch (error) {
      if (error instanceof AlreadyDispatched) throw error;
      return { body: [], fault: { error } };
    }
  }

  /** @throws {RequestError} for an action that was begun before, or can't be told from others */
  #begin(call: SealedCall, { head, digest, device }: Pick<OpenedRequest, 'head' | 'digest' | 'device'>): void {
    const { idempotencyKey: key } = head;
    if (key === undefined) throw keyMissing();
    const mayBeForgotten = this.#options.accessOf(head.method, head.path) === 'inference';
    const action = { deviceId: device.id, key, requestHash: digest(), call: call.reference, mayBeForgotten };
    refuseRepeat(this.actions.begin(action));
  }
}

interface OpenedRequest {
  readonly head: RequestHead;
  /** Those that count. */
  readonly headers: HeaderList;
  /** @throws {RequestError} where it was not to be taken */
  readonly body: () => readonly Uint8Array[];
  /** Of all that its handler sees. */
  readonly digest: () => Uint8Array;
  readonly device: DeviceRecord;
  readonly source: SealedSource;
}

/** RFC 9110, 9.2.1: it changes nothing. */
function isSafe({ method }: RequestHead): boolean {
  return method === 'GET' || method === 'HEAD';
}

function keyMissing(): RequestError {
  return new RequestError('bad_request', 'All but GET and HEAD needs an idempotency key ("k") in its head.');
}

function tooMuchUnread(): RequestError {
  return new RequestError('rate_limited', 'This device leaves too many answers unread. Read or cancel some of them.');
}

const JSON_HEADERS = [['content-type', 'application/json; charset=utf-8']] as const;

/** Server-sent events and lines of JSON: what is read as it comes. */
function isStream({ headers, bodyBytes }: InnerAnswer): boolean {
  const type = headers.find(([name]) => name === 'content-type')?.[1] ?? '';
  return bodyBytes === null && /^(text\/event-stream|application\/x-ndjson)/u.test(type);
}

/** @throws {RequestError} */
function refuseRepeat(begun: IdempotencyResult): void {
  switch (begun.result) {
    case 'new':
      return;
    case 'repeat':
      throw new AlreadyDispatched(begun.call);
    case 'other_request':
      throw new RequestError('idempotency_key_reused', 'This idempotency key was used for another request.');
    case 'full':
      throw new RequestError('rate_limited', 'This device has begun too much in the last two hours. Try again later.');
  }
}

/** Says which call it was, so that the device can take up its answer. */
class AlreadyDispatched extends RequestError {
  readonly call: CallReference;

  constructor(call: CallReference) {
    super('already_dispatched', 'This was begun before, by another call of this device.');
    this.call = call;
  }
}

function refuse(call: SealedCall, error: unknown): void {
  const outward = outwardError(error);
  const reference =
    error instanceof AlreadyDispatched ? { sid: formatBase64url(error.call.sessionId), n: error.call.callNumber } : {};
  const body = Buffer.from(JSON.stringify({ ...openai.encodeError(outward), ...reference }));
  const headers = [...JSON_HEADERS, ...Object.entries(outward.headers)];
  putWhole(call.log, { status: outward.status, headers }, body);
}
