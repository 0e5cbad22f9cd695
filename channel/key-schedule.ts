/**
 * From the end of a handshake to the keys of its calls:
 *
 *     PRKc    = HKDF-Extract(salt = h, ikm = k1)        initiator to responder
 *     PRKs    = HKDF-Extract(salt = h, ikm = k2)        responder to initiator
 *     Kreq(n) = X(PRKc, "svc-v1 req", u32 n, 32)
 *     Kres(n) = X(PRKs, "svc-v1 res", u32 n, 32)
 *
 * where h is the handshake hash and k1, k2 the keys of Split(). A key for each call and direction is what lets calls
 * run side by side and arrive in any order without a shared counter.
 */
import { encodeU32 } from './bytes.ts';
import type { Crypto } from './crypto.ts';
import { expandLabel, hkdfExtract } from './hkdf.ts';
import type { CallKey, TrafficSecret } from './keys.ts';
import { asCallKey, asTrafficSecret, KEY_BYTES } from './keys.ts';
import type { HandshakeResult } from './noise/handshake-state.ts';

export interface TrafficSecrets {
  readonly requests: TrafficSecret;
  readonly answers: TrafficSecret;
}

/** The keys of Split() are overwritten: nothing needs them any more. */
export function deriveTrafficSecrets(crypto: Crypto, result: HandshakeResult): TrafficSecrets {
  const { handshakeHash, initiatorKey, responderKey } = result;
  const requests = asTrafficSecret(hkdfExtract(crypto, handshakeHash, initiatorKey));
  const answers = asTrafficSecret(hkdfExtract(crypto, handshakeHash, responderKey));
  initiatorKey.fill(0);
  responderKey.fill(0);
  return { requests, answers };
}

/** Forward secrecy is per session: until this is called, the keys of its calls can be derived again. */
export function eraseTrafficSecrets({ requests, answers }: TrafficSecrets): void {
  requests.fill(0);
  answers.fill(0);
}

export function deriveRequestKey(crypto: Crypto, secrets: TrafficSecrets, callNumber: number): CallKey {
  return deriveCallKey(crypto, secrets.requests, 'svc-v1 req', callNumber);
}

export function deriveAnswerKey(crypto: Crypto, secrets: TrafficSecrets, callNumber: number): CallKey {
  return deriveCallKey(crypto, secrets.answers, 'svc-v1 res', callNumber);
}

function deriveCallKey(crypto: Crypto, secret: TrafficSecret, label: string, callNumber: number): CallKey {
  const expansion = { label, context: encodeU32(callNumber), length: KEY_BYTES };
  return asCallKey(expandLabel(crypto, secret, expansion));
}
