/**
 * Where a device becomes a paired one by six digits that its owner reads here and types there. The digits are never sent:
 * CPace makes a key of them on both sides, under which the pairing handshake opens or does not. A wrong guess costs one
 * of three tries, and tells nothing that could be tried out elsewhere.
 */
import { formatBase64url } from '../../channel/base64url.ts';
import { concatBytes, equalBytes, viewOf } from '../../channel/bytes.ts';
import { derivePairingPsk, startPairingCode, type CpaceSide } from '../../channel/cpace.ts';
import type { Crypto } from '../../channel/crypto.ts';
import { encodeEnvelope, type Envelope } from '../../channel/envelope.ts';
import { ChannelError } from '../../channel/errors.ts';
import { HINT, type HintCode } from '../../channel/hint.ts';
import type { PublicKey } from '../../channel/keys.ts';
import type { Responder } from '../../channel/responder.ts';
import type { ApprovalOutcome, ApprovalQueue } from '../../core/approvals/approval-queue.ts';
import type { DeviceRegistry } from '../../identity/node/device-registry.ts';
import { findDeviceDescription, type DeviceDescription, type GatewayFacts } from '../../identity/pairing.ts';
import type { GatewayKey } from '../../identity/secret-keys.ts';
import { RequestError } from '../errors.ts';
import { createRateWindow } from '../rate-window.ts';
import {
  awaitsOwner,
  type PairingRequest,
  type Challenge,
  type Paired,
  type Proved,
  type Waiting,
} from './challenge.ts';
import { CHALLENGE_MS, createChallenges } from './challenges.ts';
import { HintError } from './hint-error.ts';
import { summaryOf } from './pairing-summary.ts';
import type { SealedSource } from './source.ts';

/** Of one address. Each is a line that the owner sees and the audit log keeps. */
const REQUESTS_PER_MINUTE = 10;
const TRIES = 3;
/**
 * Three guesses in a million are nothing; three with every request, day and night, would be something. Ten an hour are
 * 87,600 a year, so that all strangers together guess right once in eleven years. An address has used up what it has
 * after two requests, so that no one machine takes all of them; where several do, an invite is not asked for a code.
 */
const WRONG_CODES_PER_HOUR = { ofAll: 10, ofClient: 2 * TRIES };
const HOUR_MS = 3_600_000;

/** What the owner has settled about pairing by a code. */
export interface CodePairing {
  readonly isOffered: boolean;
  /** The agent that such a device is good for; every one, where none is named. */
  readonly agentIndex: number | undefined;
}

export interface DiscoveryOptions {
  readonly codePairing: CodePairing;
  readonly crypto: Crypto;
  readonly responder: Pick<Responder, 'answerPairing'>;
  readonly devices: Pick<DeviceRegistry, 'admit' | 'countPairings' | 'find' | 'touch' | 'wasPairedSince'>;
  readonly approvals: Pick<ApprovalQueue<'pairing'>, 'request'>;
  /** GS. */
  readonly publicKey: PublicKey;
  readonly gatewayKey: () => GatewayKey;
  readonly gatewayFacts: (gatewayKey: GatewayKey) => GatewayFacts;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
}

/** What a device is told that asks who is here. All of it is to be proved by the code. */
export interface ChallengeAnswer {
  readonly v: 1;
  readonly nonce: string;
  readonly gatewayKey: string;
  readonly name: string;
  /** Seconds. */
  readonly expiresIn: number;
}

type From = Pick<SealedSource, 'transport' | 'clientKey'>;

interface CodeConfirmation {
  readonly challenge: Uint8Array;
  /** CS, which the pairing handshake has proved. */
  readonly deviceKey: PublicKey;
  readonly body: Uint8Array;
}

export class CodePairingDesk {
  readonly #options: DiscoveryOptions;
  readonly #challenges;
  readonly #requests;
  readonly #wrong;
  readonly #wrongOfClient;

  constructor(options: DiscoveryOptions) {
    const { crypto, now, elapsed } = options;
    this.#options = options;
    this.#challenges = createChallenges({ crypto, now });
    this.#requests = createRateWindow({ limit: REQUESTS_PER_MINUTE, now: elapsed });
    const { ofAll, ofClient } = WRONG_CODES_PER_HOUR;
    this.#wrong = createRateWindow({ limit: ofAll, windowMs: HOUR_MS, now: elapsed });
    this.#wrongOfClient = createRateWindow({ limit: ofClient, windowMs: HOUR_MS, now: elapsed });
  }

  /** Codes are for devices whose owner is near: nothing that comes through a relay. @throws HintError */
  admit({ transport }: From): void {
    if (transport === 'relay' || !this.#options.codePairing.isOffered) throw new HintError(HINT.notOffered);
  }

  /** @throws HintError */
  challenge(from: From): ChallengeAnswer {
    this.admit(from);
    const { gatewayKey, gatewayFacts, publicKey } = this.#options;
    return {
      v: 1,
      nonce: formatBase64url(this.#challenges.issue().id),
      gatewayKey: formatBase64url(publicKey),
      name: gatewayFacts(gatewayKey()).gatewayName,
      expiresIn: CHALLENGE_MS / 1000,
    };
  }

  /** @throws HintError, ChannelError */
  answer(envelope: Envelope, from: From): Uint8Array {
    this.admit(from);
    if (envelope.kind === 'discoveryOpen') return this.#open(envelope, from);
    if (envelope.kind === 'discoveryProve') return this.#prove(envelope);
    if (envelope.kind === 'discoveryCancel') this.#cancel(envelope.challenge, from);
    throw new ChannelError('malformed');
  }

  /** The sealed call after the handshake. @returns what the device is answered. @throws {RequestError} */
  confirm({ challenge: id, deviceKey, body }: CodeConfirmation): Uint8Array {
    const challenge = this.#challenges.find(id);
    const state = challenge?.state;
    if (state?.kind === 'paired') return this.#repeat(state, deviceKey);
    if (challenge === undefined || state?.kind !== 'proved') {
      throw refusal(state?.kind === 'over' && state.why === HINT.pairingDenied ? 'denied' : 'expired');
    }
    return this.#pair(challenge, state, deviceKey, body);
  }

  sweep(): void {
    this.#challenges.sweep();
  }

  /** What was shared with devices goes with it. */
  close(): void {
    this.#challenges.clear();
  }

  #open({ challenge: id, about }: Extract<Envelope, { kind: 'discoveryOpen' }>, from: From): Uint8Array {
    const description = findDeviceDescription(about);
    if (description === undefined) throw new ChannelError('malformed');
    const challenge = this.#challenges.find(id);
    if (challenge?.accepts('asked') !== true) throw new HintError(HINT.challengeOver);
    if (this.#challenges.hasWaiting(from.clientKey)) throw new HintError(HINT.tooManyPairings);
    if (this.#hasToWait(from)) throw new HintError(HINT.rateLimited);
    const waiting = this.#askOwner(challenge, description, from);
    challenge.advance('asked', waiting);
    this.#challenges.keep(challenge);
    this.#requests.count(from.clientKey);
    void waiting.pending.outcome.then((outcome) => settle(challenge, outcome));
    return opened(waiting.side);
  }

  /** Only before the owner is asked: what goes on is not ended by what others guess. */
  #hasToWait({ clientKey }: From): boolean {
    const waits = [
      this.#requests.retryAfterS(clientKey),
      this.#wrongOfClient.retryAfterS(clientKey),
      this.#wrong.retryAfterS(''),
    ];
    return waits.some((waitS) => waitS !== undefined);
  }

  #askOwner(challenge: Challenge, description: DeviceDescription, from: From): Waiting {
    const { approvals, crypto, codePairing, devices, now } = this.#options;
    const code = newCode(crypto);
    const withdrawal = new AbortController();
    const pending = approvals.request({
      kind: 'pairing',
      summary: summaryOf({ description, source: from, agentIndex: codePairing.agentIndex }),
      lifetimeMs: challenge.expiresAtMs - now(),
      code,
      signal: withdrawal.signal,
    });
    if (pending === undefined) throw new HintError(HINT.tooManyPairings);
    const devicesBefore = devices.countPairings();
    const asked = {
      clientKey: from.clientKey,
      devicesBefore,
      description,
      pending,
      withdraw: () => withdrawal.abort(),
    };
    const side = this.#newSide(challenge, code, 0);
    return { kind: 'waiting', ...asked, code, attempt: 0, side, refused: undefined };
  }

  #newSide({ id }: Challenge, code: string, attempt: number): CpaceSide {
    const { crypto, publicKey } = this.#options;
    return startPairingCode(crypto, 'responder', { code, challenge: id, attempt, gatewayKey: publicKey });
  }

  /** Three tries a request, and few requests, bound what this costs. */
  #prove(envelope: Extract<Envelope, { kind: 'discoveryProve' }>): Uint8Array {
    const { crypto, responder, now } = this.#options;
    const challenge = this.#challenges.find(envelope.challenge);
    const state = challenge?.state;
    if (challenge === undefined || state === undefined) throw new HintError(HINT.challengeOver);
    const { share, noise } = envelope;
    const purpose = { kind: 'discovery', challenge: challenge.id } as const;
    const proof = crypto.sha256(concatBytes(share, noise));
    // PairingRequest again because the answer was lost: no other try.
    if (state.kind === 'proved' && equalBytes(state.proof, proof)) {
      return proved(responder.answerPairing({ purpose, psk: state.psk }, noise, now()));
    }
    if (state.kind !== 'waiting') throw new HintError(state.kind === 'over' ? state.why : HINT.challengeOver);
    if (state.refused !== undefined && equalBytes(state.refused, proof)) return opened(state.side);
    try {
      const psk = derivePairingPsk(crypto, state.side.finish(share));
      const message2 = responder.answerPairing({ purpose, psk }, noise, now());
      const { clientKey, devicesBefore, description, pending, withdraw } = state;
      const asked = { clientKey, devicesBefore, description, pending, withdraw };
      challenge.advance('proved', { kind: 'proved', ...asked, proof, psk });
      return proved(message2);
    } catch (error) {
      if (!(error instanceof ChannelError)) throw error;
      return this.#refuse(challenge, state, proof);
    }
  }

  /** Whatever does not open is a wrong code. @throws HintError after the last try */
  #refuse(challenge: Challenge, state: Waiting, proof: Uint8Array): Uint8Array {
    const attempt = state.attempt + 1;
    this.#wrong.count('');
    this.#wrongOfClient.count(state.clientKey);
    if (attempt === TRIES) {
      end(challenge, state, HINT.codeRefused);
      throw new HintError(HINT.codeRefused);
    }
    const side = this.#newSide(challenge, state.code, attempt);
    challenge.advance('missed', { ...state, attempt, side, refused: proof });
    return opened(side);
  }

  /** The device has left. Whoever else says so stands where it could lose the device's requests as well. */
  #cancel(id: Uint8Array, { clientKey }: From): never {
    const challenge = this.#challenges.find(id);
    const state = challenge?.state;
    if (challenge !== undefined && awaitsOwner(state) && state.clientKey === clientKey) {
      end(challenge, state, HINT.challengeOver);
    }
    throw new HintError(HINT.challengeOver);
  }

  #pair(challenge: Challenge, state: Proved, deviceKey: PublicKey, body: Uint8Array): Uint8Array {
    const { devices, codePairing, gatewayKey, gatewayFacts } = this.#options;
    const description = findDeviceDescription(body);
    // What asked was not sealed: the owner may have been shown somebody else's words.
    if (description === undefined || !isSame(description, state.description)) {
      throw new RequestError('bad_request', 'The device does not call itself what the owner was shown. Pair again.');
    }
    // A confirmation that somebody held back must neither replace what came after it, nor bring back what was revoked.
    if (devices.wasPairedSince(deviceKey, state.devicesBefore)) {
      end(challenge, state, HINT.challengeOver);
      throw refusal('expired');
    }
    const outcome = state.pending.confirmCode();
    if (outcome !== 'approved') throw refusal(outcome);
    const params = { deviceKey, description, gateway: gatewayFacts(gatewayKey()) };
    const { answer, device } = devices.admit(params, codePairing.agentIndex);
    devices.touch(device, 'lan');
    challenge.advance('paired', { kind: 'paired', deviceKey, deviceId: device.id, answer });
    return answer;
  }

  #repeat(paired: Paired, deviceKey: PublicKey): Uint8Array {
    const device = this.#options.devices.find(paired.deviceId);
    const counts = device !== undefined && device.revokedAtS === undefined;
    if (!counts || !equalBytes(paired.deviceKey, deviceKey)) throw refusal('expired');
    return paired.answer;
  }
}

/** Six digits, each code as likely as any other but for one part in 10^13. */
function newCode(crypto: Crypto): string {
  const number = viewOf(crypto.randomBytes(8)).getBigUint64(0) % 1_000_000n;
  return String(number).padStart(6, '0');
}

const WHY: Readonly<Record<Exclude<ApprovalOutcome, 'approved'>, HintCode>> = {
  denied: HINT.pairingDenied,
  expired: HINT.challengeOver,
  // Whatever else withdraws it has said so before.
  cancelled: HINT.shuttingDown,
};

function settle(challenge: Challenge, outcome: ApprovalOutcome): void {
  if (outcome === 'approved' || !challenge.accepts('ended')) return;
  challenge.advance('ended', { kind: 'over', why: WHY[outcome] });
}

/** Nobody is paired with it any more, and the owner not asked. */
function end(challenge: Challenge, { withdraw }: PairingRequest, why: HintCode): void {
  challenge.advance('ended', { kind: 'over', why });
  withdraw();
}

function opened({ share }: CpaceSide): Uint8Array {
  return encodeEnvelope({ kind: 'discoveryOpened', share });
}

function proved(noise: Uint8Array): Uint8Array {
  return encodeEnvelope({ kind: 'discoveryProved', noise });
}

function isSame(one: DeviceDescription, other: DeviceDescription): boolean {
  return one.name === other.name && one.platform === other.platform && one.model === other.model;
}

function refusal(outcome: Exclude<ApprovalOutcome, 'approved'>): RequestError {
  return outcome === 'denied'
    ? new RequestError('pairing_denied', 'The owner said no to this device.')
    : new RequestError('approval_expired', 'The time for this code is over. Ask for another one.');
}
