/**
 * The known answers that a provider has to give before it is used: one session from fixed inputs, handshake to records,
 * computed by the very code that will run with it, and what it must refuse. Messages and streams are compared by their
 * SHA-256, which is noble's here whichever provider is tested.
 */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { concatBytes, utf8ToBytes } from './bytes.ts';
import { KEM_KEY_SEED_BYTES, KEM_PUBLIC_KEY_BYTES, withRandomBytes, type Crypto } from './crypto.ts';
import { encodeCallHeader } from './envelope.ts';
import { encodeAnswerHead, encodeRequestHead } from './head.ts';
import { deriveAnswerKey, deriveRequestKey, deriveTrafficSecrets } from './key-schedule.ts';
import { asSessionId } from './keys.ts';
import type { HandshakeResult } from './noise/handshake-state.ts';
import { HandshakeState } from './noise/handshake-state.ts';
import { IKHFS_PSK2 } from './noise/pattern.ts';
import { encodePayload } from './payload.ts';
import { prologueOf } from './purpose.ts';
import { RecordSealer } from './record-sealer.ts';

const EXPECTED = {
  'message 1': '973fc2c1fbea82de2697feb402c3274220fccc65e638933d8350895acf874f8b',
  'message 2': '69ae0223226b4306d52bd09d90b9d68288998e9a43d0e1513ea5bb9f4ef3266c',
  'handshake hash': 'e0ea7406f5f3f62ba740051a23419af438c440c8b4150325fa32c1ad22e94324',
  PRKc: 'a96b50532360754e822cc9292c15ee49c51a795f61017477ae372ba0323b237c',
  PRKs: 'd7fea5d6885fb49505a7e6732d40641e5164d06699feae49350ef2afc7d480dc',
  'Kreq(4095)': '3e6da15c614480d03816eff80eb3683c4995ca4159d7e3243c03d7ad119c88ba',
  request: '2ba7c117784d65b23c0c776e9e2a50dffe0bc578df56c7918a47e5b34a11e172',
  'streamed answer': '352e79734e9f9a3b52b0f62ffdb8ecae4ed70a47fc5a5c053a753e3db043837e',
};

type AnswerName = keyof typeof EXPECTED | 'encapsulation' | 'refusals';

/** The name of the first answer that is wrong; `undefined` if the provider gives all of them. */
export function failedKnownAnswer(crypto: Crypto): AnswerName | undefined {
  let reached: AnswerName = 'message 1';
  try {
    for (const [name, computed] of knownAnswers(crypto)) {
      reached = name;
      if (bytesToHex(new Uint8Array(computed)) !== EXPECTED[name]) return name;
    }
    reached = 'encapsulation';
    if (!encapsulatesFresh(crypto)) return reached;
    reached = 'refusals';
    return refuses(crypto) ? undefined : reached;
  } catch {
    // It could not even compute what comes after this one.
    return reached;
  }
}

function* knownAnswers(crypto: Crypto): Generator<[keyof typeof EXPECTED, Uint8Array]> {
  const { message1, message2, result } = runHandshake(crypto);
  yield ['message 1', sha256(message1)];
  yield ['message 2', sha256(message2)];
  yield ['handshake hash', result.handshakeHash];
  const secrets = deriveTrafficSecrets(crypto, result);
  yield ['PRKc', secrets.requests];
  yield ['PRKs', secrets.answers];
  yield ['Kreq(4095)', deriveRequestKey(crypto, secrets, 4095)];
  yield ['request', sha256(sealRequest(new RecordSealer(crypto, deriveRequestKey(crypto, secrets, 0))))];
  yield ['streamed answer', sha256(sealAnswer(new RecordSealer(crypto, deriveAnswerKey(crypto, secrets, 0))))];
}

/** Both sides, from inputs that are one byte repeated. Each reads what the other wrote. */
function runHandshake(crypto: Crypto): { message1: Uint8Array; message2: Uint8Array; result: HandshakeResult } {
  const deviceKey = crypto.x25519(repeated(0x11, 32));
  const gatewayKey = crypto.x25519(repeated(0x12, 32));
  const common = { pattern: IKHFS_PSK2, prologue: prologueOf({ kind: 'session' }) };
  const initiator = new HandshakeState({
    ...common,
    role: 'initiator',
    crypto: drawing(crypto, [0x13, 0x15]),
    staticKey: deviceKey,
    remoteStaticKey: gatewayKey.publicKey,
  });
  const responder = new HandshakeState({
    ...common,
    role: 'responder',
    crypto: drawing(crypto, [0x14, 0x16]),
    staticKey: gatewayKey,
  });
  for (const side of [initiator, responder]) side.setPsk(repeated(0x18, 32));
  const message1 = initiator.writeMessage(encodePayload({ cv: 'test' }));
  responder.readMessage(message1);
  const terms = { sid: 'FxcXFxcXFxcXFxcXFxcXFw', exp: 7200, rekey: 3600, calls: 4096 };
  const message2 = responder.writeMessage(encodePayload(terms));
  initiator.readMessage(message2);
  return { message1, message2, result: initiator.finish() };
}

const CALL = { sessionId: asSessionId(repeated(0x17, 16)), callNumber: 0 };

function sealRequest(records: RecordSealer): Uint8Array {
  const body = utf8ToBytes('{"prompt":"hi"}');
  const head = encodeRequestHead({
    method: 'POST',
    path: '/agents/8b1c/run',
    headers: [['content-type', 'application/json']],
    bodyBytes: body.length,
    idempotencyKey: repeated(0, 16),
  });
  return concatBytes(
    encodeCallHeader('callRequest', CALL),
    records.sealHead(head),
    records.sealData(body, { last: true }),
  );
}

function sealAnswer(records: RecordSealer): Uint8Array {
  const head = encodeAnswerHead({ status: 200, headers: [['content-type', 'text/event-stream']], bodyBytes: null });
  return concatBytes(
    encodeCallHeader('callAnswer', CALL),
    records.sealHead(head),
    records.sealData(utf8ToBytes('data: {"a":1}\n\n'), { padding: 'stream' }),
    records.sealPad(),
    records.sealData(utf8ToBytes('data: [DONE]\n\n'), { padding: 'stream', last: true }),
  );
}

/** What can't be repeated has no known answer: whoever has the secret key finds the same, and each time another. */
function encapsulatesFresh({ mlKem768 }: Crypto): boolean {
  const { encapsulateFresh } = mlKem768;
  if (encapsulateFresh === undefined) return true;
  const { publicKey, secretKey } = mlKem768.keyPair(repeated(0x13, KEM_KEY_SEED_BYTES));
  const secrets = [encapsulateFresh(publicKey), encapsulateFresh(publicKey)].map((encapsulation) => {
    if (encapsulation === undefined) return undefined;
    const sharedSecret = bytesToHex(encapsulation.sharedSecret);
    return bytesToHex(mlKem768.decapsulate(encapsulation.ciphertext, secretKey)) === sharedSecret
      ? sharedSecret
      : undefined;
  });
  return secrets[0] !== undefined && secrets[1] !== undefined && secrets[0] !== secrets[1];
}

/** RFC 7748 §6.1: the all-zero secret of a small-order key. RFC 8439 §2.8: another tag. FIPS 203 §7.2: no such key. */
function refuses(crypto: Crypto): boolean {
  const smallOrder = crypto.x25519(repeated(0x11, 32)).agree(repeated(0, 32));
  const forged = crypto.aead.open(repeated(0x18, 32), repeated(0, 12), repeated(0, 5), repeated(0, 64));
  const notReduced = crypto.mlKem768.encapsulateFresh?.(repeated(0xff, KEM_PUBLIC_KEY_BYTES));
  return smallOrder === undefined && forged === undefined && notReduced === undefined;
}

/** A provider whose draws are these bytes, each repeated to the length that is asked for. */
function drawing(crypto: Crypto, bytes: readonly number[]): Crypto {
  const left = [...bytes];
  return withRandomBytes(crypto, (length) => repeated(left.shift() ?? 0, length));
}

function repeated(byte: number, length: number): Uint8Array {
  return new Uint8Array(length).fill(byte);
}
