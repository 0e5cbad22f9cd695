/**
 * The HandshakeState of Noise rev 34 §5.3, for any pattern that is given as data, with pre-shared keys (§9) and hybrid
 * forward secrecy. The rules of the two hfs tokens, which Noise has only as a draft:
 *
 *     e1     writer: makes a KEM key pair, sends EncryptAndHash(public key)
 *            reader: DecryptAndHash() of 1184 bytes, or 1200 once there is a key
 *     ekem1  writer: encapsulates to e1, sends EncryptAndHash(ciphertext), then MixKey(shared secret)
 *            reader: DecryptAndHash() of 1088 or 1104 bytes, decapsulates, then MixKey(shared secret)
 *
 * Unlike e, e1 is not mixed into the key where there is a psk: nothing needs it, since e stands before it always.
 *
 * A message can be read in two steps, up to and including the sender's static key and then the rest, so that a stranger
 * costs one Diffie-Hellman. A state that threw is of no further use; the caller erases it (§5.3).
 */
import { concatBytes, EMPTY } from '../bytes.ts';
import type { Crypto, DhKeyPair, Encapsulation, KemKeyPair } from '../crypto.ts';
import {
  KEM_CIPHERTEXT_BYTES,
  KEM_ENCAPSULATION_SEED_BYTES,
  KEM_KEY_SEED_BYTES,
  KEM_PUBLIC_KEY_BYTES,
} from '../crypto.ts';
import { ChannelError } from '../errors.ts';
import type { PublicKey } from '../keys.ts';
import { asPublicKey, KEY_BYTES } from '../keys.ts';
import type { HandshakePattern, Token } from './pattern.ts';
import { SymmetricState } from './symmetric-state.ts';

/** Noise rev 34 §3. */
const MAX_MESSAGE_BYTES = 65_535;

export interface HandshakeOptions {
  readonly crypto: Crypto;
  readonly pattern: HandshakePattern;
  readonly role: 'initiator' | 'responder';
  readonly prologue: Uint8Array;
  readonly staticKey?: DhKeyPair | undefined;
  readonly remoteStaticKey?: PublicKey | undefined;
}

export interface HandshakeResult {
  readonly handshakeHash: Uint8Array;
  /** The keys of Split(), §5.2: what the initiator and what the responder sends with. */
  readonly initiatorKey: Uint8Array;
  readonly responderKey: Uint8Array;
}

export class HandshakeState {
  readonly #options: HandshakeOptions;
  readonly #symmetric: SymmetricState;
  readonly #hasPsk: boolean;
  #nextMessage = 0;
  #ephemeral: DhKeyPair | undefined;
  #remoteEphemeral: PublicKey | undefined;
  #remoteStatic: PublicKey | undefined;
  #kem: KemKeyPair | undefined;
  #remoteKemKey: Uint8Array | undefined;
  #psk: Uint8Array | undefined;
  /** What is left to read of a message whose reading has begun. */
  #unread: { tokens: readonly Token[]; bytes: Uint8Array } | undefined;

  constructor(options: HandshakeOptions) {
    this.#options = options;
    this.#remoteStatic = options.remoteStaticKey;
    this.#hasPsk = options.pattern.messages.some((tokens) => tokens.includes('psk'));
    this.#symmetric = new SymmetricState(options.crypto, options.pattern.protocolName);
    this.#symmetric.mixHash(options.prologue);
    const { knownStatic } = options.pattern;
    if (knownStatic.initiator) this.#symmetric.mixHash(this.#staticKeyOf('initiator'));
    if (knownStatic.responder) this.#symmetric.mixHash(this.#staticKeyOf('responder'));
  }

  /** Known beforehand, or read from the message that held it. */
  get remoteStaticKey(): PublicKey | undefined {
    return this.#remoteStatic;
  }

  /** Must be called before the message whose tokens name it; a responder learns from `s` which key that is. */
  setPsk(psk: Uint8Array): void {
    this.#psk = psk;
  }

  writeMessage(payload: Uint8Array): Uint8Array {
    const parts = this.#takeTokens('write').map((token) => this.#writeToken(token));
    const message = concatBytes(...parts, this.#symmetric.encryptAndHash(payload));
    if (message.length > MAX_MESSAGE_BYTES) throw new RangeError(`a Noise message can't have ${message.length} bytes`);
    return message;
  }

  /** @throws ChannelError `handshake_refused` */
  readMessage(message: Uint8Array): Uint8Array {
    this.beginReading(message);
    return this.finishReading();
  }

  /** Reads up to and including the `s` of the message, or all its tokens if it has none. */
  beginReading(message: Uint8Array): void {
    if (message.length > MAX_MESSAGE_BYTES) throw new ChannelError('handshake_refused');
    const tokens = this.#takeTokens('read');
    const upTo = tokens.includes('s') ? tokens.indexOf('s') + 1 : tokens.length;
    const bytes = this.#readTokens(tokens.slice(0, upTo), message);
    this.#unread = { tokens: tokens.slice(upTo), bytes };
  }

  /** Reads what `beginReading` left, and returns the payload. */
  finishReading(): Uint8Array {
    if (this.#unread === undefined) throw new TypeError('no message is being read');
    const { tokens, bytes } = this.#unread;
    this.#unread = undefined;
    return this.#symmetric.decryptAndHash(this.#readTokens(tokens, bytes));
  }

  /** Ends the handshake after its last message: Split(), and all keys but its are erased. */
  finish(): HandshakeResult {
    if (this.#nextMessage !== this.#options.pattern.messages.length || this.#unread !== undefined) {
      throw new TypeError('the handshake has messages left, or is over');
    }
    const [initiatorKey, responderKey] = this.#symmetric.split();
    const { handshakeHash } = this.#symmetric;
    this.erase();
    return { handshakeHash, initiatorKey, responderKey };
  }

  /** Best effort: JavaScript may have copies that no program reaches. */
  erase(): void {
    this.#ephemeral?.erase();
    this.#kem?.secretKey.fill(0);
    this.#symmetric.erase();
    this.#unread = undefined;
    this.#nextMessage = Infinity;
  }

  #takeTokens(action: 'write' | 'read'): readonly Token[] {
    const initiatorsTurn = this.#nextMessage % 2 === 0;
    const tokens = this.#options.pattern.messages[this.#nextMessage];
    const writes = initiatorsTurn === (this.#options.role === 'initiator');
    if (tokens === undefined || this.#unread !== undefined || writes !== (action === 'write')) {
      throw new TypeError(`this is not the moment to ${action} a handshake message`);
    }
    this.#nextMessage++;
    return tokens;
  }

  #writeToken(token: Token): Uint8Array {
    switch (token) {
      case 'e':
        return this.#writeEphemeral();
      case 's':
        return this.#symmetric.encryptAndHash(this.#staticKey().publicKey);
      case 'e1':
        return this.#writeKemKey();
      case 'ekem1':
        return this.#writeKemCiphertext();
      default:
        this.#mixSecret(token);
        return EMPTY;
    }
  }

  /** @returns what of the message is left after these tokens */
  #readTokens(tokens: readonly Token[], message: Uint8Array): Uint8Array {
    let rest = message;
    for (const token of tokens) {
      const fieldBytes = this.#fieldBytes(token);
      if (rest.length < fieldBytes) throw new ChannelError('handshake_refused');
      const field = rest.subarray(0, fieldBytes);
      rest = rest.subarray(fieldBytes);
      this.#readToken(token, field);
    }
    return rest;
  }

  #readToken(token: Token, field: Uint8Array): void {
    switch (token) {
      case 'e':
        this.#remoteEphemeral = asPublicKey(new Uint8Array(field));
        this.#mixEphemeral(this.#remoteEphemeral);
        return;
      case 's':
        this.#remoteStatic = asPublicKey(this.#symmetric.decryptAndHash(field));
        return;
      case 'e1':
        this.#remoteKemKey = this.#symmetric.decryptAndHash(field);
        return;
      case 'ekem1':
        this.#readKemCiphertext(field);
        return;
      default:
        this.#mixSecret(token);
    }
  }

  #fieldBytes(token: Token): number {
    const { tagBytes } = this.#symmetric;
    switch (token) {
      case 'e':
        return KEY_BYTES;
      case 's':
        return KEY_BYTES + tagBytes;
      case 'e1':
        return KEM_PUBLIC_KEY_BYTES + tagBytes;
      case 'ekem1':
        return KEM_CIPHERTEXT_BYTES + tagBytes;
      default:
        return 0;
    }
  }

  #writeEphemeral(): Uint8Array {
    const { crypto } = this.#options;
    const secret = crypto.randomBytes(KEY_BYTES);
    this.#ephemeral = crypto.x25519(secret);
    secret.fill(0);
    this.#mixEphemeral(this.#ephemeral.publicKey);
    return this.#ephemeral.publicKey;
  }

  /** §9.2: in a handshake with a psk, ephemeral keys go into the key too, so that no key depends on the psk alone. */
  #mixEphemeral(publicKey: PublicKey): void {
    this.#symmetric.mixHash(publicKey);
    if (this.#hasPsk) this.#symmetric.mixKey(publicKey);
  }

  #writeKemKey(): Uint8Array {
    const { crypto } = this.#options;
    const seed = crypto.randomBytes(KEM_KEY_SEED_BYTES);
    this.#kem = crypto.mlKem768.keyPair(seed);
    seed.fill(0);
    return this.#symmetric.encryptAndHash(this.#kem.publicKey);
  }

  #writeKemCiphertext(): Uint8Array {
    const encapsulation = encapsulate(this.#options.crypto, known(this.#remoteKemKey));
    if (encapsulation === undefined) throw new ChannelError('handshake_refused');
    const field = this.#symmetric.encryptAndHash(encapsulation.ciphertext);
    this.#mixAndErase(encapsulation.sharedSecret);
    return field;
  }

  #readKemCiphertext(field: Uint8Array): void {
    const ciphertext = this.#symmetric.decryptAndHash(field);
    this.#mixAndErase(this.#options.crypto.mlKem768.decapsulate(ciphertext, known(this.#kem).secretKey));
  }

  #mixSecret(token: 'ee' | 'es' | 'se' | 'ss' | 'psk'): void {
    if (token === 'psk') {
      this.#symmetric.mixKeyAndHash(known(this.#psk));
      return;
    }
    // The first letter names the initiator's key, the second the responder's (§5.3).
    const [own, other] = this.#options.role === 'initiator' ? [0, 1] : [1, 0];
    const keyPair = token[own] === 'e' ? known(this.#ephemeral) : this.#staticKey();
    const shared = keyPair.agree(known(token[other] === 'e' ? this.#remoteEphemeral : this.#remoteStatic));
    if (shared === undefined) throw new ChannelError('handshake_refused');
    this.#mixAndErase(shared);
  }

  #mixAndErase(secret: Uint8Array): void {
    this.#symmetric.mixKey(secret);
    secret.fill(0);
  }

  #staticKey(): DhKeyPair {
    return known(this.#options.staticKey);
  }

  #staticKeyOf(role: 'initiator' | 'responder'): PublicKey {
    return role === this.#options.role ? this.#staticKey().publicKey : known(this.#remoteStatic);
  }
}

/** A pattern never names a key before the message that makes it known, so a missing one was not given by our caller. */
function known<Key>(key: Key | undefined): Key {
  if (key === undefined) throw new TypeError('the handshake lacks a key that its pattern names');
  return key;
}

function encapsulate(crypto: Crypto, publicKey: Uint8Array): Encapsulation | undefined {
  const { mlKem768 } = crypto;
  if (mlKem768.encapsulateFresh !== undefined) return mlKem768.encapsulateFresh(publicKey);
  const m = crypto.randomBytes(KEM_ENCAPSULATION_SEED_BYTES);
  const encapsulation = mlKem768.encapsulate(publicKey, m);
  m.fill(0);
  return encapsulation;
}
