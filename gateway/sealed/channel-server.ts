/**
 * The channel server that paired devices come in by: envelopes in, envelopes out, the same over HTTP and through a relay.
 *
 *     bytes → limits → handshake, or records → whole request → dispatch → records
 *
 * `call-dispatch.ts` says what is done with a call; here is how it comes in, and how all of it ends.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Crypto } from '../../channel/crypto.ts';
import { decodeEnvelope, encodeEnvelope } from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import type { CallHead } from '../../channel/head.ts';
import { HINT } from '../../channel/hint.ts';
import type { PublicKey } from '../../channel/keys.ts';
import type { Purpose, PurposeKind } from '../../channel/purpose.ts';
import type { ReceivedCall } from '../../channel/received-call.ts';
import { MAX_SEALED_BODY_BYTES } from '../../channel/request-bounds.ts';
import { Responder } from '../../channel/responder.ts';
import type { EndedCall } from '../../channel/responder-session.ts';
import type { SetTimer } from '../../core/timer.ts';
import type { Pairings } from '../access-key-source.ts';
import { createBodyBudget } from './body-budget.ts';
import { PAIRING_BODY_BYTES } from '../bounds.ts';
import { createCallDispatch, type CallDispatch, type DispatchOptions } from './call-dispatch.ts';
import { CallTable } from './call-table.ts';
import { CodePairingDesk, type ChallengeAnswer, type CodePairing } from './code-pairing-desk.ts';
import { createHandshakeLimits, type HandshakeLimits } from './handshake-limits.ts';
import { HintError, hintFor } from './hint-error.ts';
import { SealedCall } from './sealed-call.ts';
import { SealedRequest } from './sealed-request.ts';
import type { SealedSource } from './source.ts';

/** What an envelope is about, by the way it came. */
export type SealedOp = 'session' | 'call' | 'invite' | 'discovery';

type Bytes = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

const SWEEP_MS = 5000;
const BOOT_BYTES = 12;

export interface ChannelServer {
  /**
   * Answers an envelope. The answer begins with a hint where it is refused; once it has begun otherwise, it is sealed.
   * @throws {RequestError} `identity_unavailable`, and what reading the bytes throws
   */
  handle(op: SealedOp, source: SealedSource, bytes: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array>;
  /** For a device that wants to be paired by a code. @throws HintError, {RequestError} */
  challenge(source: Pick<SealedSource, 'transport' | 'clientKey'>): Promise<ChallengeAnswer>;
  /**
   * Resolves when nothing of these grants' devices goes on, and nothing more of it is sent; after a second in any case.
   * @returns how many calls had to be cut off
   */
  revoke(kids: readonly string[]): Promise<number>;
  /** Ends all sessions, each stream in its own words. */
  close(): Promise<void>;
  /** For the operator's eyes, and to see that nothing grows. */
  counts(): ChannelServerCounts;
}

interface ChannelServerCounts {
  /** Of paired devices, those included that nobody has confirmed yet and those that only end their calls. */
  readonly sessions: number;
  /** In flight, or kept to be taken up again. */
  readonly calls: number;
  /** What their bodies and their answers take. */
  readonly heldBytes: number;
}

export interface ChannelServerOptions extends Omit<DispatchOptions, 'calls' | 'pairings' | 'discovery'> {
  readonly codePairing: CodePairing;
  /** @throws {RequestError} `identity_unavailable` */
  readonly openPairings: () => Promise<Pairings>;
  readonly crypto: () => Crypto;
  /** What the route takes that is asked for. */
  readonly maxBodyBytes: (method: string, path: string) => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly limits?: HandshakeLimits;
}

export function createChannelServer(options: ChannelServerOptions): ChannelServer {
  let opened: OpenChannelServer | undefined;
  let isClosed = false;
  const open = async (): Promise<OpenChannelServer> => {
    if (opened === undefined) {
      const pairings = await options.openPairings();
      opened ??= new OpenChannelServer(options, pairings);
    }
    if (isClosed) throw new HintError(HINT.shuttingDown);
    return opened;
  };
  return {
    async *handle(op, source, bytes) {
      let answer: Bytes;
      try {
        answer = await (await open()).answer(op, source, bytes);
      } catch (error) {
        yield hintFor(error);
        return;
      }
      yield* answer;
    },
    challenge: async (source) => (await open()).discovery.challenge(source),
    revoke: async (kids) => opened?.revoke(kids) ?? 0,
    async close() {
      isClosed = true;
      await opened?.close();
    },
    counts: () => opened?.counts() ?? { sessions: 0, calls: 0, heldBytes: 0 },
  };
}

class OpenChannelServer {
  readonly discovery: CodePairingDesk;
  readonly #options: ChannelServerOptions;
  readonly #pairings: Pairings;
  readonly #responder: Responder;
  readonly #limits: HandshakeLimits;
  readonly #budget = createBodyBudget();
  readonly #calls = new CallTable();
  readonly #byReceived = new WeakMap<ReceivedCall, SealedCall>();
  readonly #dispatch: CallDispatch;
  #cancelSweep: (() => void) | undefined;

  constructor(options: ChannelServerOptions, pairings: Pairings) {
    const crypto = options.crypto();
    this.#options = options;
    this.#pairings = pairings;
    this.#limits = options.limits ?? createHandshakeLimits(options.elapsed);
    const staticKey = crypto.x25519(pairings.gatewayKey());
    this.#responder = new Responder({
      crypto,
      staticKey,
      findPsk: (deviceKey) => pairings.devices.findPsk(deviceKey),
      boot: bytesToHex(crypto.randomBytes(BOOT_BYTES)),
      maxBodyBytes: MAX_SEALED_BODY_BYTES,
    });
    this.discovery = new CodePairingDesk({
      ...options,
      ...pairings,
      crypto,
      responder: this.#responder,
      publicKey: staticKey.publicKey,
    });
    this.#dispatch = createCallDispatch({ ...options, pairings, discovery: this.discovery, calls: this.#calls });
    this.#sweepSoon(options.setTimer);
  }

  async answer(op: SealedOp, source: SealedSource, bytes: AsyncIterable<Uint8Array>): Promise<Bytes> {
    if (op === 'call') return this.#call(kindsOfCall(source), source, bytes);
    const envelope = Buffer.concat(await collect(bytes));
    if (op === 'session') return [this.#session(envelope, source)];
    if (op === 'discovery') this.discovery.admit(source);
    if (envelope[1] === CALL_KIND) return this.#call([op], source, once(envelope));
    if (op === 'discovery') return [this.discovery.answer(decodeEnvelope(envelope), source)];
    return [this.#pairing(envelope, source)];
  }

  async revoke(kids: readonly string[]): Promise<number> {
    const { devices } = this.#pairings;
    const revoked = kids.map((kid) => devices.findByKid(kid)).filter((device) => device !== undefined);
    const ended = revoked.flatMap(({ staticKey }) => this.#responder.revoke(staticKey));
    const cut = await this.#end(ended);
    for (const { staticKey } of revoked) {
      for (const call of this.#calls.of(staticKey)) if (call.purpose.kind === 'session') call.abandon();
    }
    for (const { id } of revoked) this.#dispatch.forget(id);
    return cut;
  }

  counts(): ChannelServerCounts {
    const { pending, confirmed, retired } = this.#responder.counts('session');
    const heldBytes = this.#budget.heldBytes + this.#calls.heldBytes;
    return { sessions: pending + confirmed + retired, calls: this.#calls.size, heldBytes };
  }

  async close(): Promise<void> {
    this.#cancelSweep?.();
    this.discovery.close();
    await this.#end(this.#responder.shutDown());
  }

  #session(bytes: Uint8Array, source: SealedSource): Uint8Array {
    const envelope = decodeEnvelope(bytes);
    if (envelope.kind !== 'sessionRequest') throw new ChannelError('malformed');
    const admit = (deviceKey: PublicKey): void => this.#limits.admit({ name: bytesToHex(deviceKey), source });
    const noise = this.#responder.answerSession(envelope.noise, this.#options.now(), admit);
    return encodeEnvelope({ kind: 'sessionAnswer', noise });
  }

  #pairing(bytes: Uint8Array, source: SealedSource): Uint8Array {
    const envelope = decodeEnvelope(bytes);
    if (envelope.kind !== 'inviteRequest') throw new ChannelError('malformed');
    const { inviteId, noise } = envelope;
    const psk = this.#pairings.invites.findPsk(inviteId);
    if (psk === undefined) throw new ChannelError('handshake_refused');
    const purpose = { kind: 'invite', inviteId: new Uint8Array(inviteId) } as const;
    const admit = (): void => this.#limits.admit({ name: bytesToHex(inviteId), source });
    const message2 = this.#responder.answerPairing({ purpose, psk, admit }, noise, this.#options.now());
    return encodeEnvelope({ kind: 'inviteAnswer', noise: message2 });
  }

  async #call(kinds: CallKinds, source: SealedSource, bytes: AsyncIterable<Uint8Array>): Promise<Bytes> {
    const received = this.#responder.receiveCall(...kinds);
    const incoming: Incoming = { call: undefined, request: undefined, onEnded: undefined };
    try {
      for await (const piece of untilEnded(bytes, incoming)) this.#take(received, piece, incoming, source);
      received.end();
    } catch (error) {
      incoming.request?.release();
      // Ended from this side while it came in: that is its answer.
      if (incoming.call?.signal.aborted === true) return incoming.call.answer(source);
      incoming.call?.abandon();
      throw error;
    }
    const { call, request } = incoming;
    if (call === undefined || request?.isWhole !== true) {
      call?.abandon();
      return [];
    }
    const answer = call.answer(source);
    void this.#dispatch.run(call, request, source).finally(() => request.release());
    return answer;
  }

  #take(received: ReceivedCall, piece: Uint8Array, incoming: Incoming, source: SealedSource): void {
    for (const event of received.push(piece, this.#options.now())) {
      if (event.type !== 'head') {
        incoming.request?.take(event);
        continue;
      }
      const { now, setTimer } = this.#options;
      const memory = this.#calls.memoryOf(event.remoteStaticKey);
      const call = new SealedCall(received, event, { now, setTimer, memory, onDone: () => this.#calls.remove(call) });
      incoming.call = call;
      call.signal.addEventListener('abort', () => incoming.onEnded?.(), { once: true });
      this.#limits.met({ name: bytesToHex(event.remoteStaticKey), source });
      this.#calls.add(call);
      this.#byReceived.set(received, call);
      incoming.request = new SealedRequest(event.data, {
        device: bytesToHex(event.remoteStaticKey),
        budget: this.#budget,
        maxBodyBytes: (head) => this.#maxBodyBytes(head, event.purpose),
      });
    }
  }

  #maxBodyBytes(head: CallHead, purpose: Purpose): number {
    if (head.kind !== 'request') return 0;
    if (purpose.kind !== 'session') return PAIRING_BODY_BYTES;
    return Math.min(MAX_SEALED_BODY_BYTES, this.#options.maxBodyBytes(head.head.method, head.head.path));
  }

  /** @returns how many had to be cut off */
  async #end(ended: readonly EndedCall[]): Promise<number> {
    const calls = ended.flatMap(({ call: received, lastRecord }) => {
      const call = this.#byReceived.get(received);
      call?.finish(lastRecord);
      return call === undefined ? [] : [call];
    });
    const closed = await Promise.all(calls.map((call) => call.close()));
    return closed.filter((isCut) => isCut).length;
  }

  #sweepSoon(setTimer: SetTimer): void {
    this.#cancelSweep = setTimer(SWEEP_MS, () => {
      void this.#end(this.#responder.sweep(this.#options.now()));
      this.discovery.sweep();
      this.#sweepSoon(setTimer);
    });
  }
}

type CallKinds = readonly [PurposeKind, ...PurposeKind[]];

/** Over HTTP the path says what a call is for. A relay is told no more than that it is one. */
function kindsOfCall({ transport }: SealedSource): CallKinds {
  return transport === 'relay' ? ['session', 'invite'] : ['session'];
}

interface Incoming {
  call: SealedCall | undefined;
  request: SealedRequest | undefined;
  /** Called when the call is ended from this side. */
  onEnded: (() => void) | undefined;
}

/** The bytes of a request, until its call is ended from this side: one that stalls is not waited for. */
async function* untilEnded(bytes: AsyncIterable<Uint8Array>, incoming: Incoming): AsyncGenerator<Uint8Array> {
  const pieces = bytes[Symbol.asyncIterator]();
  try {
    while (incoming.call?.signal.aborted !== true) {
      const step = await new Promise<IteratorResult<Uint8Array, unknown> | undefined>((resolve, reject) => {
        incoming.onEnded = () => resolve(undefined);
        pieces.next().then(resolve, reject);
      });
      if (step === undefined || step.done === true) return;
      yield step.value;
    }
  } finally {
    // Not waited for: a piece may be under way that never comes.
    pieces.return?.().catch(() => undefined);
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

/** The second byte of a call; see `envelope.ts`. */
const CALL_KIND = 0x03;

async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Uint8Array[]> {
  const pieces: Uint8Array[] = [];
  for await (const piece of bytes) pieces.push(piece);
  return pieces;
}
