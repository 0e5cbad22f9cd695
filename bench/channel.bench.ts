/**
 * What the channel costs beyond the primitives that it is made of: `node dist/bench/channel.bench.js`. Each row is a ratio
 * of two things timed in turn in this run, so that it means the same on a slow machine and on a busy one.
 */
import * as openssl from 'node:crypto';
import { chacha20poly1305 } from '@noble/ciphers/chacha.js';
import type { Crypto, DhKeyPair } from '../channel/crypto.ts';
import type { InitiatorSession } from '../channel/initiator.ts';
import { startSession } from '../channel/initiator.ts';
import type { Psk } from '../channel/keys.ts';
import { asCallKey, asPsk } from '../channel/keys.ts';
import type { CryptoChoice } from '../channel/node/crypto.ts';
import { gatewayCrypto } from '../channel/node/crypto.ts';
import { RecordOpener } from '../channel/record-opener.ts';
import { RecordSealer } from '../channel/record-sealer.ts';
import { Responder } from '../channel/responder.ts';
import type { Ratio } from './channel/measure.ts';
import { compare } from './channel/measure.ts';
import { recordPrimitives } from './channel/recorded-primitives.ts';

interface Setup {
  readonly crypto: Crypto;
  readonly deviceKey: DhKeyPair;
  readonly gatewayKey: DhKeyPair;
  readonly psk: Psk;
}

function newSetup(crypto: Crypto): Setup {
  const newKey = (): DhKeyPair => crypto.x25519(crypto.randomBytes(32));
  return { crypto, deviceKey: newKey(), gatewayKey: newKey(), psk: asPsk(crypto.randomBytes(32)) };
}

function newResponder({ crypto, gatewayKey, psk }: Setup, knows = true): Responder {
  const findPsk = (): Psk | undefined => (knows ? psk : undefined);
  return new Responder({ crypto, staticKey: gatewayKey, findPsk, boot: 'bench', maxBodyBytes: 1 << 25 });
}

function start({ crypto, deviceKey, gatewayKey, psk }: Setup): ReturnType<typeof startSession> {
  const purpose = { kind: 'session' } as const;
  const hints = { clientVersion: 'bench' };
  return startSession({ crypto, purpose, staticKey: deviceKey, remoteStaticKey: gatewayKey.publicKey, psk, hints });
}

/** What the gateway does for a device's message 1. Many of them, since a repeated one would get the stored answer. */
function handshake(setup: Setup): Ratio {
  const messages = Array.from({ length: 100 }, () => start(setup).message1);
  const bare = recordPrimitives(setup.crypto, ({ crypto, recorded }) => {
    newResponder({ ...setup, crypto, gatewayKey: recorded(setup.gatewayKey) }).answerSession(messages[0]!, 0);
  });
  const responder = newResponder(setup);
  let turn = 0;
  // By the time that a message comes round again, its session is no longer pending.
  return compare(() => {
    responder.answerSession(messages[turn++ % messages.length]!, turn * 1000);
  }, bare);
}

function stranger(setup: Setup): Ratio {
  const { message1 } = start(setup);
  const bare = recordPrimitives(setup.crypto, ({ crypto, recorded }) => {
    refuse(newResponder({ ...setup, crypto, gatewayKey: recorded(setup.gatewayKey) }, false), message1);
  });
  const responder = newResponder(setup, false);
  return compare(() => refuse(responder, message1), bare);
}

function refuse(responder: Responder, message1: Uint8Array): void {
  try {
    responder.answerSession(message1, 0);
  } catch {
    return;
  }
  throw new Error('a stranger was let in');
}

/** A request of a head and a short body and an answer of the same, sealed and opened, both sides. */
function smallCall(setup: Setup): Ratio {
  const bare = recordPrimitives(setup.crypto, ({ crypto, forget }) => {
    const sides = newSides({ ...setup, crypto });
    forget();
    callOnce(sides);
  });
  let sides = newSides(setup);
  return compare(() => {
    if (!callOnce(sides)) sides = newSides(setup);
  }, bare);
}

interface Sides {
  readonly session: InitiatorSession;
  readonly responder: Responder;
}

function newSides(setup: Setup): Sides {
  const responder = newResponder(setup);
  const started = start(setup);
  return { responder, session: started.finish(responder.answerSession(started.message1, 0), 0) };
}

const HEAD = new Uint8Array(120).fill(0x61);
const BODY = new Uint8Array(200).fill(0x62);

/** @returns false if the session has no call left */
function callOnce({ session, responder }: Sides): boolean {
  const call = session.openCall(0);
  if (call === undefined) return false;
  const received = responder.receiveCall('session');
  const request = [call.header, call.request.sealHead(HEAD), call.request.sealData(BODY, { last: true })];
  const [head] = request.flatMap((bytes) => [...received.push(bytes, 0)]);
  if (head?.type !== 'head') throw new Error('the call was not taken');
  const { header, records } = head.answer;
  const answer = [header, records.sealHead(HEAD), records.sealData(BODY, { last: true })];
  const events = answer.flatMap((bytes) => [...call.answer.push(bytes)]);
  if (events.length !== 3) throw new Error('the answer did not come');
  return true;
}

/** The cipher as one would call it with nothing around it. */
interface BareCipher {
  seal(plaintext: Uint8Array): void;
  open(ciphertext: Uint8Array): void;
}

const KEY = new Uint8Array(32).fill(1);
/** As fast as it goes: made once, where the channel has a key of its own for each call. */
const KEY_OBJECT = openssl.createSecretKey(KEY);
const NONCE = new Uint8Array(12);
const AD = new Uint8Array(5);

const BARE_CIPHERS: Readonly<Record<CryptoChoice, BareCipher>> = {
  noble: {
    seal: (plaintext) => void chacha20poly1305(KEY, NONCE, AD).encrypt(plaintext),
    open: (ciphertext) => void chacha20poly1305(KEY, NONCE, AD).decrypt(ciphertext),
  },
  node: {
    seal(plaintext) {
      const cipher = openssl.createCipheriv('chacha20-poly1305', KEY_OBJECT, NONCE, { authTagLength: 16 });
      cipher.setAAD(AD, { plaintextLength: plaintext.length });
      cipher.update(plaintext);
      cipher.final();
      cipher.getAuthTag();
    },
    open(ciphertext) {
      const decipher = openssl.createDecipheriv('chacha20-poly1305', KEY_OBJECT, NONCE, { authTagLength: 16 });
      decipher.setAAD(AD, { plaintextLength: ciphertext.length - 16 });
      decipher.setAuthTag(ciphertext.subarray(-16));
      decipher.update(ciphertext.subarray(0, -16));
      decipher.final();
    },
  },
};

/** Records of the largest data that a plaintext of this size holds, as the body of a large request has them. */
function seal(crypto: Crypto, bare: BareCipher, plaintextBytes: number): Ratio {
  const data = new Uint8Array(plaintextBytes - 4).fill(0x61);
  const plaintext = new Uint8Array(plaintextBytes).fill(0x61);
  const sealer = new RecordSealer(crypto, asCallKey(new Uint8Array(KEY)));
  sealer.sealHead(HEAD);
  return compare(
    () => void sealer.sealData(data),
    () => bare.seal(plaintext),
  );
}

const RECORDS_OF_A_STREAM = 64;

function open(crypto: Crypto, bare: BareCipher, plaintextBytes: number): Ratio {
  const sealer = new RecordSealer(crypto, asCallKey(new Uint8Array(KEY)));
  const head = sealer.sealHead(HEAD);
  const data = new Uint8Array(plaintextBytes - 4).fill(0x61);
  const records = Array.from({ length: RECORDS_OF_A_STREAM }, () => sealer.sealData(data));
  const newOpener = (): RecordOpener => {
    const opener = new RecordOpener(crypto, asCallKey(new Uint8Array(KEY)));
    for (const event of opener.push(head)) if (event.type !== 'head') throw new Error('not the head');
    return opener;
  };
  let opener = newOpener();
  let turn = 0;
  const openNext = (): void => {
    for (const event of opener.push(records[turn++]!)) if (event.type !== 'data') throw new Error('no data');
    if (turn < records.length) return;
    turn = 0;
    opener = newOpener();
  };
  const sealed = new Uint8Array(plaintextBytes + 16);
  sealed.set(new Uint8Array(plaintextBytes).fill(0x61));
  gatewayCrypto('node').aead.seal(KEY, NONCE, AD, sealed);
  return compare(openNext, () => bare.open(sealed));
}

function printRow(what: string, rate: string, { ratio }: Ratio, goal?: number): void {
  const aim = goal === undefined ? '' : `goal ${goal} %`;
  console.log(`  ${what.padEnd(34)}${rate.padStart(22)}${`${Math.round(ratio * 100)} %`.padStart(9)}   ${aim}`);
}

const perSecond = ({ oursUs }: Ratio): string => `${Math.round(1e6 / oursUs)} /s`;
const microseconds = ({ oursUs }: Ratio): string => `${oursUs.toFixed(1)} µs`;

function printThroughput(choice: CryptoChoice, crypto: Crypto): void {
  const bare = BARE_CIPHERS[choice];
  for (const size of [256, 4096, 16_384, 65_536]) {
    for (const [name, ratio] of [
      ['seal', seal(crypto, bare, size)],
      ['open', open(crypto, bare, size)],
    ] as const) {
      printRow(`${name} ${size} B`, `${Math.round(size / ratio.oursUs)} MB/s`, ratio, size >= 16_384 ? 80 : undefined);
    }
  }
}

function main(): void {
  console.log('Each: the rate, and what share of the bare primitives’ it is.');
  for (const choice of ['node', 'noble'] as const) {
    console.log(`\n${choice}`);
    const setup = newSetup(gatewayCrypto(choice));
    const handshakes = handshake(setup);
    printRow('handshakes, gateway', perSecond(handshakes), handshakes, 70);
    const strangers = stranger(setup);
    printRow('strangers refused', perSecond(strangers), strangers);
    const calls = smallCall(setup);
    printRow('a small call, both sides', microseconds(calls), calls);
    printThroughput(choice, setup.crypto);
  }
}

main();
