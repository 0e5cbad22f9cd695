/** The device's side of pairing by a code, step by step, as a test wants each of them to be. */
import { request as httpRequest } from 'node:http';
import { json } from 'node:stream/consumers';
import { findBase64url } from '../../channel/base64url.ts';
import { derivePairingPsk, startPairingCode } from '../../channel/cpace.ts';
import type { DhKeyPair } from '../../channel/crypto.ts';
import { decodeEnvelope, encodeEnvelope } from '../../channel/envelope.ts';
import { startSession, type InitiatorSession } from '../../channel/initiator.ts';
import { asPublicKey, type PublicKey } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { encodeDeviceDescription } from '../../identity/pairing.ts';
import { confirmAt, exchange, newStaticKey, rawDescription, type RawAnswer } from './raw-device.ts';
import type { ServiceHere } from './service-here.ts';

const crypto = gatewayCrypto('node');
export { rawDescription };

export interface RawChallenge {
  readonly id: Uint8Array;
  readonly gatewayKey: PublicKey;
}

interface ChallengeReply {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

export function getChallenge(url: string, from: string, headers: Record<string, string> = {}): Promise<ChallengeReply> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(`${url}/pair/challenge`, { localAddress: from, agent: false, headers }, (response) => {
      json(response).then(
        (body) => resolve({ status: response.statusCode ?? 0, body: body as ChallengeReply['body'] }),
        reject,
      );
    });
    asked.on('error', reject).end();
  });
}

export async function fetchChallenge(url: string, from: string): Promise<RawChallenge> {
  const { status, body } = await getChallenge(url, from);
  if (status !== 200) throw new Error(`no challenge: ${status} ${JSON.stringify(body)}`);
  const bytes = (name: string) => findBase64url(String(body[name])) ?? new Uint8Array();
  return { id: bytes('nonce'), gatewayKey: asPublicKey(bytes('gatewayKey')) };
}

/** What an envelope was answered with. */
export interface RawReply {
  readonly status: number;
  readonly share?: Uint8Array;
  readonly noise?: Uint8Array;
  readonly hint?: number;
}

export async function ask(url: string, envelope: Uint8Array, from: string): Promise<RawReply> {
  const { status, bytes } = await exchange(`${url}/pair`, envelope, from);
  const answer = decodeEnvelope(bytes);
  if (answer.kind === 'hint') return { status, hint: answer.code };
  if (answer.kind === 'discoveryOpened') return { status, share: answer.share };
  if (answer.kind === 'discoveryProved') return { status, noise: answer.noise };
  throw new Error(`answered with ${answer.kind}`);
}

export function open(
  url: string,
  { id: challenge }: Pick<RawChallenge, 'id'>,
  from: string,
  description = rawDescription,
): Promise<RawReply> {
  const about = encodeDeviceDescription(description);
  return ask(url, encodeEnvelope({ kind: 'discoveryOpen', challenge, about }), from);
}

/** The word of a device that gives up. */
export function cancel(url: string, { id: challenge }: Pick<RawChallenge, 'id'>, from: string): Promise<RawReply> {
  return ask(url, encodeEnvelope({ kind: 'discoveryCancel', challenge }), from);
}

export interface RawProof {
  readonly envelope: Uint8Array;
  finish(message2: Uint8Array): InitiatorSession;
}

/** The proof of somebody who believes that this is the code. */
export function prove(
  { id: challenge, gatewayKey }: RawChallenge,
  { code, attempt = 0, share }: { readonly code: string; readonly attempt?: number; readonly share: Uint8Array },
  staticKey: DhKeyPair = newStaticKey(),
): RawProof {
  const side = startPairingCode(crypto, 'initiator', { code, challenge, attempt, gatewayKey });
  const psk = derivePairingPsk(crypto, side.finish(share));
  const purpose = { kind: 'discovery', challenge } as const;
  const hints = { clientVersion: 'raw' };
  const started = startSession({ crypto, purpose, staticKey, remoteStaticKey: gatewayKey, psk, hints });
  const envelope = encodeEnvelope({ kind: 'discoveryProve', challenge, share: side.share, noise: started.message1 });
  return { envelope, finish: (message2) => started.finish(message2, Date.now()) };
}

export function confirm(url: string, session: InitiatorSession, description = rawDescription): Promise<RawAnswer> {
  return confirmAt(`${url}/pair`, session, description);
}

/** The codes that the owner sees, oldest first. */
export const codesAt = ({ running }: ServiceHere): readonly string[] =>
  running.approvals.list().flatMap(({ code }) => code ?? []);

/** Another code than this one. */
export const wrong = (code: string, by = 1): string => String((Number(code) + by) % 1_000_000).padStart(6, '0');
