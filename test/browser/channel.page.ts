/** What the browser runs: every vector and one handshake with the browser's own randomness, on the noble provider. */
import { startSession } from '../../channel/initiator.ts';
import { asPsk } from '../../channel/keys.ts';
import { nobleCrypto } from '../../channel/noble.ts';
import { Responder } from '../../channel/responder.ts';
import { failedKnownAnswer } from '../../channel/self-test.ts';
import { runAllVectors } from '../vectors/all.ts';
import type { Outcome } from '../vectors/outcome.ts';

export interface BrowserReport {
  readonly outcomes: readonly Outcome[];
  readonly failedKnownAnswer: string | undefined;
  readonly events: readonly string[];
}

const noble = nobleCrypto((length) => crypto.getRandomValues(new Uint8Array(length)));

function runChannel(contents: Readonly<Record<string, unknown>>): BrowserReport {
  return {
    outcomes: runAllVectors(noble, contents),
    failedKnownAnswer: failedKnownAnswer(noble),
    events: runCall(),
  };
}

/** A session with itself; the types of what the responder's side of a call saw. */
function runCall(): readonly string[] {
  const [deviceKey, gatewayKey] = [noble.x25519(noble.randomBytes(32)), noble.x25519(noble.randomBytes(32))];
  const psk = asPsk(noble.randomBytes(32));
  const responder = new Responder({
    crypto: noble,
    staticKey: gatewayKey,
    findPsk: () => psk,
    boot: '',
    maxBodyBytes: 0,
  });
  const started = startSession({
    crypto: noble,
    purpose: { kind: 'session' },
    staticKey: deviceKey,
    remoteStaticKey: gatewayKey.publicKey,
    psk,
    hints: { clientVersion: 'browser' },
  });
  const call = started.finish(responder.answerSession(started.message1, 0), 0).openCall(0);
  if (call === undefined) return [];
  const received = responder.receiveCall('session');
  const request = [
    call.header,
    call.request.sealHead(new Uint8Array(3)),
    ...call.request.sealBody(new Uint8Array(70_000)),
  ];
  return request.flatMap((bytes) => [...received.push(bytes, 0)]).map(({ type }) => type);
}

Object.assign(globalThis, { runChannel });
