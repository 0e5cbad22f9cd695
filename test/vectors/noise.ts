/** Runs the Noise vectors of this folder: both sides of each handshake, and the transport messages after it. */
import type { Crypto } from '../../channel/crypto.ts';
import { asPublicKey } from '../../channel/keys.ts';
import { CipherState } from '../../channel/noise/cipher-state.ts';
import type { HandshakeResult } from '../../channel/noise/handshake-state.ts';
import { HandshakeState } from '../../channel/noise/handshake-state.ts';
import { scripted } from '../channel/scripted-crypto.ts';
import { patternOf } from './noise-patterns.ts';
import type { Outcome } from './outcome.ts';
import { fromHex, isHex, runRows } from './outcome.ts';

interface NoiseVector {
  readonly protocol_name: string;
  readonly init_prologue: string;
  readonly init_static?: string;
  readonly init_ephemeral: string;
  readonly init_remote_static?: string;
  readonly init_psks?: readonly string[];
  readonly resp_prologue: string;
  readonly resp_static?: string;
  readonly resp_ephemeral?: string;
  readonly resp_remote_static?: string;
  readonly resp_psks?: readonly string[];
  readonly handshake_hash: string;
  readonly messages: readonly { readonly payload: string; readonly ciphertext: string }[];
}

export function runCacophony(crypto: Crypto, content: unknown): Outcome {
  const { vectors } = content as { readonly vectors: readonly NoiseVector[] };
  return runRows(vectors.map((vector) => ({ name: vector.protocol_name, check: () => replay(crypto, vector) })));
}

function replay(crypto: Crypto, vector: NoiseVector): boolean {
  const initiator = handshake(crypto, vector, 'initiator');
  const responder = handshake(crypto, vector, 'responder');
  const handshakeMessages = patternOf(vector.protocol_name).messages.length;
  const agreed = vector.messages.slice(0, handshakeMessages).every(({ payload, ciphertext }, index) => {
    const [writer, reader] = index % 2 === 0 ? [initiator, responder] : [responder, initiator];
    const message = writer.writeMessage(fromHex(payload));
    return isHex(message, ciphertext) && isHex(reader.readMessage(message), payload);
  });
  return (
    agreed && replayTransport(crypto, vector, { results: [initiator.finish(), responder.finish()], handshakeMessages })
  );
}

interface Finished {
  readonly results: readonly [HandshakeResult, HandshakeResult];
  readonly handshakeMessages: number;
}

/** The transport messages go on alternating where the handshake stopped; after a one-way pattern only one side sends. */
function replayTransport(crypto: Crypto, vector: NoiseVector, { results, handshakeMessages }: Finished): boolean {
  const [ours, theirs] = results;
  const oneWay = handshakeMessages === 1;
  const senders = [new CipherState(crypto, ours.initiatorKey), new CipherState(crypto, theirs.responderKey)];
  const receivers = [new CipherState(crypto, theirs.initiatorKey), new CipherState(crypto, ours.responderKey)];
  const none = new Uint8Array(0);
  const opened = vector.messages.slice(handshakeMessages).every(({ payload, ciphertext }, index) => {
    const direction = oneWay ? 0 : (handshakeMessages + index) % 2;
    const message = senders[direction]!.seal(none, fromHex(payload));
    return isHex(message, ciphertext) && isHex(receivers[direction]!.open(none, message), payload);
  });
  return opened && results.every(({ handshakeHash }) => isHex(handshakeHash, vector.handshake_hash));
}

function handshake(crypto: Crypto, vector: NoiseVector, role: 'initiator' | 'responder'): HandshakeState {
  const initiates = role === 'initiator';
  const secret = initiates ? vector.init_static : vector.resp_static;
  const remote = initiates ? vector.init_remote_static : vector.resp_remote_static;
  const [psk] = (initiates ? vector.init_psks : vector.resp_psks) ?? [];
  const state = new HandshakeState({
    crypto: scripted(crypto, [fromHex((initiates ? vector.init_ephemeral : vector.resp_ephemeral) ?? '')]),
    pattern: patternOf(vector.protocol_name),
    role,
    prologue: fromHex(initiates ? vector.init_prologue : vector.resp_prologue),
    staticKey: secret === undefined ? undefined : crypto.x25519(fromHex(secret)),
    remoteStaticKey: remote === undefined ? undefined : asPublicKey(fromHex(remote)),
  });
  if (psk !== undefined) state.setPsk(fromHex(psk));
  return state;
}

interface HybridVector {
  readonly base: number;
  readonly msg_c: string;
  readonly handshake_hash: string;
  readonly cs1_k: string;
  readonly cs2_k: string;
}

/** The rule in the file: every input is one byte repeated, `base` and up. */
export function runXxHfs(crypto: Crypto, content: unknown): Outcome {
  const { name, vectors } = content as { readonly name: string; readonly vectors: readonly HybridVector[] };
  return runRows(
    vectors.map((vector) => ({ name: `${name} ${vector.base}`, check: () => hybrid(crypto, name, vector) })),
  );
}

function hybrid(crypto: Crypto, name: string, vector: HybridVector): boolean {
  const input = (offset: number, length = 32): Uint8Array => new Uint8Array(length).fill(vector.base + offset);
  const common = { pattern: patternOf(name), prologue: new Uint8Array(0) };
  const initiator = new HandshakeState({
    ...common,
    role: 'initiator',
    crypto: scripted(crypto, [input(3), input(5, 64)]),
    staticKey: crypto.x25519(input(1)),
  });
  const responder = new HandshakeState({
    ...common,
    role: 'responder',
    crypto: scripted(crypto, [input(4), input(6)]),
    staticKey: crypto.x25519(input(2)),
  });
  const none = new Uint8Array(0);
  responder.readMessage(initiator.writeMessage(none));
  initiator.readMessage(responder.writeMessage(none));
  const third = initiator.writeMessage(none);
  responder.readMessage(third);
  return isHex(third, vector.msg_c) && [initiator, responder].every((side) => isResult(side.finish(), vector));
}

function isResult(result: HandshakeResult, vector: HybridVector): boolean {
  return (
    isHex(result.handshakeHash, vector.handshake_hash) &&
    isHex(result.initiatorKey, vector.cs1_k) &&
    isHex(result.responderKey, vector.cs2_k)
  );
}
