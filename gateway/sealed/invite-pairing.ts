/**
 * Where a device that holds an invite becomes a paired one. The owner is asked where the invite says so; what was said
 * counts also for a device that has lost its connection meanwhile and comes again. A question whose answer would change
 * nothing any more, since the invite was used or closed meanwhile, is withdrawn.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { PublicKey } from '../../channel/keys.ts';
import type { ApprovalOutcome, ApprovalQueue } from '../../core/approvals/approval-queue.ts';
import { findDeviceDescription, type DeviceDescription, type GatewayFacts } from '../../identity/pairing.ts';
import type { DeviceRegistry } from '../../identity/node/device-registry.ts';
import type { Redemption } from '../../identity/node/redemption.ts';
import type { InviteRecord, InviteRegistry } from '../../identity/node/invite-registry.ts';
import type { GatewayKey } from '../../identity/secret-keys.ts';
import { RequestError } from '../errors.ts';
import { summaryOf } from './pairing-summary.ts';
import type { SealedSource } from './source.ts';

/** Devices that may wait with one invite: whoever has copied it must not be in the way of other invites. */
const MAX_WAITING_PER_INVITE = 2;

export interface DeskOptions {
  readonly devices: Pick<DeviceRegistry, 'redeem' | 'preview' | 'touch'>;
  readonly invites: Pick<InviteRegistry, 'find' | 'close'>;
  readonly approvals: Pick<ApprovalQueue<'pairing'>, 'request'>;
  readonly gatewayKey: () => GatewayKey;
  readonly gatewayFacts: (gatewayKey: GatewayKey) => GatewayFacts;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Calls it when a device was paired, or an invite closed. */
  readonly onChange: (listener: () => void) => void;
}

export interface InviteConfirmation {
  readonly inviteId: Uint8Array;
  /** CS, which the pairing handshake has proved. */
  readonly deviceKey: PublicKey;
  readonly body: Uint8Array;
  readonly source: Pick<SealedSource, 'transport' | 'clientKey'>;
  /** Fires when the device has left. */
  readonly signal: AbortSignal;
}

export interface InvitePairing {
  /** @returns what the device is answered. @throws {RequestError} */
  confirm(confirmation: InviteConfirmation): Promise<Uint8Array>;
}

/** One question to the owner, for all calls of a device that wait for the answer. */
interface Waiting {
  readonly asking: OwnerQuestion;
  readonly answer: Promise<Uint8Array>;
  readonly withdrawal: AbortController;
  callers: number;
}

interface OwnerQuestion {
  readonly inviteId: string;
  readonly deviceKey: PublicKey;
  readonly description: DeviceDescription;
  readonly source: InviteConfirmation['source'];
}

export function createPairingDesk(options: DeskOptions): InvitePairing {
  return new InviteDesk(options);
}

class InviteDesk implements InvitePairing {
  readonly #options: DeskOptions;
  /** Answers that wait for the owner, by invite and device. */
  readonly #waiting = new Map<string, Waiting>();

  constructor(options: DeskOptions) {
    this.#options = options;
    options.onChange(() => {
      for (const { asking, withdrawal } of this.#waiting.values()) if (!this.#canPair(asking)) withdrawal.abort();
    });
  }

  async confirm({ inviteId, deviceKey, body, source, signal }: InviteConfirmation): Promise<Uint8Array> {
    const description = findDeviceDescription(body);
    if (description === undefined) {
      throw new RequestError(
        'bad_request',
        'A device says its name and platform, each in 1 to 64 printable characters.',
      );
    }
    const asking = { inviteId: bytesToHex(inviteId), deviceKey, description, source };
    const invite = this.#options.invites.find(asking.inviteId);
    if (!this.#canPair(asking) || invite?.needsApproval !== true) return this.#redeem(asking);
    const name = `${asking.inviteId} ${bytesToHex(deviceKey)}`;
    return join(this.#waiting.get(name) ?? this.#ask(name, asking, invite), signal);
  }

  #canPair({ inviteId, deviceKey }: OwnerQuestion): boolean {
    return this.#options.devices.preview(inviteId, deviceKey) === 'new';
  }

  #redeem(asking: OwnerQuestion): Uint8Array {
    const { devices, gatewayFacts, gatewayKey } = this.#options;
    const redemption = devices.redeem({ ...asking, gateway: gatewayFacts(gatewayKey()) });
    if (redemption.result === 'paired') devices.touch(redemption.device, asking.source.transport);
    return answerOf(redemption);
  }

  #ask(name: string, asking: OwnerQuestion, invite: InviteRecord): Waiting {
    const withdrawal = new AbortController();
    const forget = (): void => {
      if (this.#waiting.get(name) === asked) this.#waiting.delete(name);
    };
    const answer = this.#afterApproval(asking, invite, withdrawal.signal).finally(forget);
    const asked = { asking, answer, withdrawal, callers: 0 };
    this.#waiting.set(name, asked);
    // Who comes again after that is asked for anew.
    withdrawal.signal.addEventListener('abort', forget, { once: true });
    return asked;
  }

  async #afterApproval(asking: OwnerQuestion, invite: InviteRecord, signal: AbortSignal): Promise<Uint8Array> {
    const { approvals, invites, now } = this.#options;
    const asked = this.#isTaken(asking.inviteId)
      ? undefined
      : approvals.request({
          kind: 'pairing',
          summary: summaryOf({ ...asking, agentIndex: invite.agentIndex }),
          lifetimeMs: Math.max(1, invite.expiresAtS * 1000 - now()),
          signal,
        });
    if (asked === undefined) {
      throw new RequestError('too_many_approvals', 'Too many devices wait for the owner. Try again later.');
    }
    const outcome = await asked.outcome;
    // Whoever has it could go on asking.
    if (outcome === 'denied') invites.close(asking.inviteId);
    // Withdrawn since it can't be paired any more: the invite says why.
    if (outcome !== 'cancelled' || this.#canPair(asking)) requireYes(outcome);
    return this.#redeem(asking);
  }

  #isTaken(inviteId: string): boolean {
    const ofInvite = [...this.#waiting.values()].filter(({ asking }) => asking.inviteId === inviteId);
    return ofInvite.length >= MAX_WAITING_PER_INVITE;
  }
}

/** When the last of them has left, the question is withdrawn. */
function join(asked: Waiting, signal: AbortSignal): Promise<Uint8Array> {
  const leave = (): void => {
    asked.callers -= 1;
    if (asked.callers === 0) asked.withdrawal.abort();
  };
  asked.callers += 1;
  if (signal.aborted) leave();
  else signal.addEventListener('abort', leave, { once: true });
  return asked.answer;
}

function answerOf(redemption: Redemption): Uint8Array {
  switch (redemption.result) {
    case 'paired':
    case 'repeated':
      return redemption.answer;
    case 'used':
      throw new RequestError(
        'invite_used',
        'Another device has used this invite. If that was not yours, tell its owner.',
      );
    case 'over':
      throw new RequestError('invite_over', 'This invite is over. Ask for a new one: "postern invite".');
  }
}

function requireYes(outcome: ApprovalOutcome): void {
  if (outcome === 'approved') return;
  if (outcome === 'denied') throw new RequestError('pairing_denied', 'The owner said no to this device.');
  throw new RequestError('approval_expired', 'Nobody has approved this device in time. Ask for a new invite.');
}
