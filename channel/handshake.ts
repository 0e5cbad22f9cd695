/**
 * The handshakes of this protocol. Each state is a type of its own, so what is only valid in one exists only there:
 *
 *     initiator   initiate() ─► SentGreeting ── finish(message 2) ──────────────────► Handshaken
 *     responder   greet(message 1) ─► Greeting ── accept(psk) ─► Accepted ── answer() ─► Answered
 *
 *     session  Noise_IKhfs+psk2_25519+MLKEM768_ChaChaPoly_SHA256      pairing  Noise_IKhfs+psk0_…
 *         <- s                                                            <- s
 *         ...                                                             ...
 *         -> e, es, e1, s, ss          1552 bytes                         -> psk, e, es, e1, s, ss
 *         <- e, ee, ekem1, se, psk     1408 bytes                         <- e, ee, ekem1, se
 *
 * All here is synchronous: between finding a device's key and answering it nothing else can happen, a revocation least
 * of all. Whatever fails, fails as `handshake_refused`, with all keys erased.
 */
import type { Crypto, DhKeyPair } from './crypto.ts';
import { ChannelError } from './errors.ts';
import type { TrafficSecrets } from './key-schedule.ts';
import { deriveTrafficSecrets } from './key-schedule.ts';
import type { Psk, PublicKey } from './keys.ts';
import type { HandshakeOptions } from './noise/handshake-state.ts';
import { HandshakeState } from './noise/handshake-state.ts';
import { IKHFS_PSK0, IKHFS_PSK2 } from './noise/pattern.ts';
import type { ClientHints, SessionTerms } from './payload.ts';
import { decodeClientHints, decodeSessionTerms, encodeClientHints, encodeSessionTerms } from './payload.ts';
import type { Purpose } from './purpose.ts';
import { prologueOf } from './purpose.ts';

export interface InitiatorOptions {
  readonly crypto: Crypto;
  readonly purpose: Purpose;
  readonly staticKey: DhKeyPair;
  readonly remoteStaticKey: PublicKey;
  readonly psk: Psk;
  readonly hints: ClientHints;
}

/** Message 1 is made; message 2 has not come. */
export interface SentGreeting {
  readonly message: Uint8Array;
  /** Takes message 2, once: whether it is accepted or not, this handshake is over. @throws ChannelError */
  finish(message: Uint8Array): Handshaken;
}

export interface Handshaken {
  readonly terms: SessionTerms;
  readonly secrets: TrafficSecrets;
}

export function initiate({ psk, hints, ...options }: InitiatorOptions): SentGreeting {
  const state = new HandshakeState({ ...noiseOf(options), role: 'initiator' });
  state.setPsk(psk);
  const message = refusable(state, () => state.writeMessage(encodeClientHints(hints)));
  return {
    message,
    finish: (answer) =>
      refusable(state, () => {
        const terms = decodeSessionTerms(state.readMessage(answer));
        return { terms, secrets: deriveTrafficSecrets(options.crypto, state.finish()) };
      }),
  };
}

export interface ResponderOptions {
  readonly crypto: Crypto;
  readonly purpose: Purpose;
  readonly staticKey: DhKeyPair;
  /** Pairing only, where the first message needs it already. */
  readonly psk?: Psk;
}

/** The sender of message 1 is known: one Diffie-Hellman for a session. The rest of the message is unread. */
export interface Greeting {
  readonly remoteStaticKey: PublicKey;
  /** Reads the rest. A session's psk is given here, that of a pairing was before. @throws ChannelError */
  accept(psk?: Psk): Accepted;
  refuse(): ChannelError;
}

export interface Accepted {
  /** Whoever recorded an earlier message 1 could have sent them. */
  readonly hints: ClientHints;
  answer(terms: SessionTerms): Answered;
}

export interface Answered {
  readonly message: Uint8Array;
  readonly secrets: TrafficSecrets;
}

/** @throws ChannelError `handshake_refused` */
export function greet({ psk, ...options }: ResponderOptions, message: Uint8Array): Greeting {
  const state = new HandshakeState({ ...noiseOf(options), role: 'responder' });
  if (psk !== undefined) state.setPsk(psk);
  const remoteStaticKey = refusable(state, () => {
    state.beginReading(message);
    return state.remoteStaticKey;
  });
  if (remoteStaticKey === undefined) throw new TypeError('message 1 of every IK pattern holds a static key');
  return {
    remoteStaticKey,
    accept: (late) => accept(options.crypto, state, late),
    refuse() {
      state.erase();
      return new ChannelError('handshake_refused');
    },
  };
}

function accept(crypto: Crypto, state: HandshakeState, psk: Psk | undefined): Accepted {
  if (psk !== undefined) state.setPsk(psk);
  return {
    hints: refusable(state, () => decodeClientHints(state.finishReading())),
    answer: (terms) =>
      refusable(state, () => {
        const message = state.writeMessage(encodeSessionTerms(terms));
        return { message, secrets: deriveTrafficSecrets(crypto, state.finish()) };
      }),
  };
}

/** Erases the handshake if a step of it fails. */
function refusable<Value>(state: HandshakeState, step: () => Value): Value {
  try {
    return step();
  } catch (error) {
    state.erase();
    throw error;
  }
}

type Common = Pick<InitiatorOptions, 'crypto' | 'purpose' | 'staticKey'> & { readonly remoteStaticKey?: PublicKey };

function noiseOf({ crypto, purpose, staticKey, remoteStaticKey }: Common): Omit<HandshakeOptions, 'role'> {
  const pattern = purpose.kind === 'session' ? IKHFS_PSK2 : IKHFS_PSK0;
  return { crypto, pattern, prologue: prologueOf(purpose), staticKey, remoteStaticKey };
}
