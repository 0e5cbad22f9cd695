/**
 * Handshake patterns as data (Noise rev 34 §7), and the two that this protocol uses. The messages alternate, and the
 * initiator sends the first.
 */

export type Token =
  /** §5.3 and §9.3. */
  | 'e'
  | 's'
  | 'ee'
  | 'es'
  | 'se'
  | 'ss'
  | 'psk'
  /** Hybrid forward secrecy (the Noise project's draft): the initiator's one-time KEM key, and the answer to it. */
  | 'e1'
  | 'ekem1';

export interface HandshakePattern {
  /** The whole protocol name: it is what the handshake hash begins with. */
  readonly protocolName: string;
  /** Whose static key the other side knows before the first message. */
  readonly knownStatic: { readonly initiator: boolean; readonly responder: boolean };
  readonly messages: readonly (readonly Token[])[];
}

const RESPONDER_KNOWN = { initiator: false, responder: true };

/** Sessions. The gateway has to learn who asks before it can find their key, so the psk comes last. */
export const IKHFS_PSK2: HandshakePattern = {
  protocolName: 'Noise_IKhfs+psk2_25519+MLKEM768_ChaChaPoly_SHA256',
  knownStatic: RESPONDER_KNOWN,
  messages: [
    ['e', 'es', 'e1', 's', 'ss'],
    ['e', 'ee', 'ekem1', 'se', 'psk'],
  ],
};

/** Pairing. The secret of the invite or the code comes first: without it not even the first message opens. */
export const IKHFS_PSK0: HandshakePattern = {
  protocolName: 'Noise_IKhfs+psk0_25519+MLKEM768_ChaChaPoly_SHA256',
  knownStatic: RESPONDER_KNOWN,
  messages: [
    ['psk', 'e', 'es', 'e1', 's', 'ss'],
    ['e', 'ee', 'ekem1', 'se'],
  ],
};
