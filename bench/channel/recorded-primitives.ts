/**
 * The bare primitives of a piece of work: every call that it makes to its provider is written down with its arguments,
 * so that the same calls can be made again with no protocol around them. Nothing that does this work in this order with
 * this provider can be faster.
 */
import type { Crypto, DhKeyPair, Encapsulation } from '../../channel/crypto.ts';

export interface Recorder {
  /** The provider to work with. */
  readonly crypto: Crypto;
  /** Makes a key pair that there was before record its agreements too. */
  readonly recorded: (pair: DhKeyPair) => DhKeyPair;
  /** What was called so far was preparation. */
  readonly forget: () => void;
}

/** Runs `work` once on a recording provider. @returns what makes the same calls again */
export function recordPrimitives(crypto: Crypto, work: (recorder: Recorder) => void): () => void {
  const calls: (() => unknown)[] = [];
  work({
    crypto: recordingInto(calls, crypto),
    recorded: (pair) => recordingPair(calls, pair),
    forget: () => void calls.splice(0),
  });
  return () => {
    for (const call of calls) call();
  };
}

function recordingInto(calls: (() => unknown)[], crypto: Crypto): Crypto {
  const copy = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);
  const run = <Value>(call: () => Value): Value => {
    calls.push(call);
    return call();
  };
  return {
    randomBytes: (length) => run(() => crypto.randomBytes(length)),
    sha256(message) {
      const given = copy(message);
      return run(() => crypto.sha256(given));
    },
    hmacSha256(key, message) {
      const given = [copy(key), copy(message)] as const;
      return run(() => crypto.hmacSha256(...given));
    },
    x25519(secretKey) {
      const given = copy(secretKey);
      return recordingPair(
        calls,
        run(() => crypto.x25519(given)),
      );
    },
    aead: {
      seal(key, nonce, associatedData, box) {
        const given = [copy(key), copy(nonce), copy(associatedData)] as const;
        // Sealing again what was sealed costs the same, and is done in memory of its own.
        const again = copy(box);
        calls.push(() => crypto.aead.seal(...given, again));
        crypto.aead.seal(key, nonce, associatedData, box);
      },
      open(key, nonce, associatedData, box) {
        const given = [copy(key), copy(nonce), copy(associatedData), copy(box)] as const;
        return run(() => crypto.aead.open(...given));
      },
    },
    mlKem768: recordingKem(run, crypto),
  };
}

function recordingKem(run: <Value>(call: () => Value) => Value, { mlKem768 }: Crypto): Crypto['mlKem768'] {
  const copy = (bytes: Uint8Array): Uint8Array => new Uint8Array(bytes);
  const { encapsulateFresh } = mlKem768;
  const fresh = (publicKey: Uint8Array): Encapsulation | undefined => {
    const given = copy(publicKey);
    return run(() => encapsulateFresh?.(given));
  };
  return {
    encapsulateFresh: encapsulateFresh === undefined ? undefined : fresh,
    keyPair(seed) {
      const given = copy(seed);
      return run(() => mlKem768.keyPair(given));
    },
    encapsulate(publicKey, m) {
      const given = [copy(publicKey), copy(m)] as const;
      return run(() => mlKem768.encapsulate(...given));
    },
    decapsulate(ciphertext, secretKey) {
      const given = [copy(ciphertext), copy(secretKey)] as const;
      return run(() => mlKem768.decapsulate(...given));
    },
  };
}

/** A key pair whose agreements are written down too. */
function recordingPair(calls: (() => unknown)[], pair: DhKeyPair): DhKeyPair {
  return {
    publicKey: pair.publicKey,
    agree(otherPublicKey) {
      const given = new Uint8Array(otherPublicKey);
      const call = (): Uint8Array | undefined => pair.agree(given);
      calls.push(call);
      return call();
    },
    // The pair has to agree again when the calls are made again.
    erase() {},
  };
}
