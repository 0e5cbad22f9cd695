/**
 * A paired device that means harm, at the sealed channel server itself: it begins calls and does not end them, takes the beginning
 * of an answer and nothing more, and pads as it likes. Each call comes in a way of its own, which it can break.
 */
import { encodeEnvelope, decodeEnvelope } from '../../channel/envelope.ts';
import { concatBytes, viewOf } from '../../channel/bytes.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { encodeAttachHead, encodeRequestHead, type CallReference } from '../../channel/head.ts';
import { startSession, type InitiatorSession, type OutgoingCall } from '../../channel/initiator.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { MAX_DATA_BYTES } from '../../channel/record.ts';
import type { ChannelServer } from '../../gateway/sealed/channel-server.ts';
import { readAnswer, request, type PairedRaw, type RawAnswer } from './raw-device.ts';

const AEAD_TAG_BYTES = 16;
const node = gatewayCrypto('node');

/** Seals every full record as one byte, padded to the length that it had. */
export const paddingCrypto: Crypto = {
  ...node,
  aead: {
    ...node.aead,
    seal(key, nonce, associatedData, box) {
      if (box.length - AEAD_TAG_BYTES > MAX_DATA_BYTES) {
        viewOf(box).setUint32(0, 1);
        box.fill(0, 5, -AEAD_TAG_BYTES);
      }
      node.aead.seal(key, nonce, associatedData, box);
    },
  },
};

export interface HostileCall {
  readonly call: OutgoingCall;
  readonly reference: CallReference;
  /** Sends more of the request. */
  send(bytes: Uint8Array): void;
  /** No more of it will come. */
  end(): void;
  /** The next piece of the answer; undefined at its end. */
  take(): Promise<Uint8Array | undefined>;
  /** All that is left of the answer. */
  read(): Promise<Omit<RawAnswer, 'outerStatus'>>;
  /** Its way breaks. */
  cut(): void;
}

export class HostileDevice {
  readonly calls: HostileCall[] = [];
  readonly #channelServer: ChannelServer;
  readonly #device: PairedRaw;
  readonly #crypto: Crypto;
  #ways = 0;

  constructor(channelServer: ChannelServer, device: PairedRaw, crypto = node) {
    this.#channelServer = channelServer;
    this.#device = device;
    this.#crypto = crypto;
  }

  async newSession(): Promise<InitiatorSession> {
    const { staticKey, gatewayKey, grant } = this.#device;
    const purpose = { kind: 'session' } as const;
    const keys = { staticKey, remoteStaticKey: gatewayKey, psk: grant.psk };
    const started = startSession({ crypto: this.#crypto, purpose, ...keys, hints: {} });
    const asked = encodeEnvelope({ kind: 'sessionRequest', noise: started.message1 });
    const { pieces } = this.#way('session', asked);
    const envelope = decodeEnvelope((await pieces.next()).value as Uint8Array);
    if (envelope.kind !== 'sessionAnswer') throw new Error(`answered with ${JSON.stringify(envelope)}`);
    return started.finish(envelope.noise, Date.now());
  }

  /** Begins a call with these bytes, and asks for the beginning of its answer. */
  begin(session: InitiatorSession, bytes: (call: OutgoingCall) => Uint8Array, isWhole = true): HostileCall {
    const call = session.openCall(Date.now());
    if (call === undefined) throw new Error('the session takes no more calls');
    const way = this.#way('call', bytes(call));
    if (isWhole) way.end();
    let first: Promise<IteratorResult<Uint8Array>> | undefined = way.pieces.next();
    // Asked for at once, so that the call is under way; looked at when somebody wants it.
    first.catch(() => undefined);
    const take = async (): Promise<Uint8Array | undefined> => {
      const step = await (first ?? way.pieces.next());
      first = undefined;
      return step.done === true ? undefined : step.value;
    };
    const read = async (): Promise<Omit<RawAnswer, 'outerStatus'>> => {
      const all: Uint8Array[] = [];
      for (let piece = await take(); piece !== undefined; piece = await take()) all.push(piece);
      return readAnswer(call, concatBytes(...all));
    };
    const reference = { sessionId: session.terms.sessionId, callNumber: call.callNumber };
    const begun = { call, reference, send: way.send, end: way.end, cut: way.cut, take, read };
    this.calls.push(begun);
    return begun;
  }

  ask(session: InitiatorSession, method: string, path: string): HostileCall {
    return this.begin(session, (call) => sealedHead(call, encodeRequestHead(request(method, path).head)));
  }

  /** @param target of another call, or of this one, where it is given as its number from here on */
  attach(session: InitiatorSession, target: CallReference, nextIndex = 0): HostileCall {
    return this.begin(session, (call) => sealedHead(call, encodeAttachHead(target, nextIndex)));
  }

  /** One that reads from itself. */
  attachToItself(session: InitiatorSession): HostileCall {
    const { sessionId } = session.terms;
    return this.begin(session, (call) =>
      sealedHead(call, encodeAttachHead({ sessionId, callNumber: call.callNumber }, 0)),
    );
  }

  cutAll(): void {
    for (const call of this.calls) call.cut();
  }

  #way(op: 'session' | 'call', bytes: Uint8Array) {
    this.#ways += 1;
    const gone = new AbortController();
    const { body, send, end } = feed(bytes, gone.signal);
    const source = {
      transport: 'lan',
      clientKey: `way ${this.#ways}`,
      gone: gone.signal,
      cut: () => gone.abort(),
    } as const;
    if (op === 'session') end();
    const pieces = this.#channelServer.handle(op, source, body);
    const cut = (): void => {
      gone.abort();
      // Who carries the answer stops asking for it.
      pieces.return(undefined).catch(() => undefined);
    };
    return { pieces, send, end, cut };
  }
}

function sealedHead(call: OutgoingCall, head: Uint8Array): Uint8Array {
  return concatBytes(call.header, call.request.sealHead(head, { last: true }));
}

/** The bytes of a request as they are sent: those that there are, then each as it comes. */
function feed(first: Uint8Array, gone: AbortSignal) {
  const stream = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: Infinity });
  const writer = stream.writable.getWriter();
  const ignore = (): undefined => undefined;
  writer.write(first).catch(ignore);
  gone.addEventListener('abort', () => void writer.abort(new Error('cut')).catch(ignore), { once: true });
  return {
    body: stream.readable,
    send: (bytes: Uint8Array) => void writer.write(bytes).catch(ignore),
    end: () => void writer.close().catch(ignore),
  };
}
