/**
 * Where a device that holds an invite becomes a paired one. The owner is asked where the invite says so; what was said
 * counts also for a device that has lost its connection meanwhile and comes again.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { PublicKey } from '../../channel/keys.ts';
import type { ApprovalOutcome, ApprovalQueue } from '../../core/approvals/approval-queue.ts';
import { findDeviceDescription, type DeviceDescription, type GatewayFacts } from '../../identity/pairing.ts';
import type { DeviceRegistry, Redemption } from '../../identity/node/device-registry.ts';
import type { InviteRecord, InviteRegistry } from '../../identity/node/invite-registry.ts';
import type { GatewayKey } from '../../identity/secret-keys.ts';
import { RequestError } from '../errors.ts';
import { summaryOf } from './pairing-summary.ts';
import type { SealedSource } from './source.ts';

/** Devices that may wait with one invite: whoever has copied it must not be in the way of other invites. */
const MAX_WAITING_PER_INVITE = 2;

export interface DeskOptions {
  readonly devices: Pick<DeviceRegistry, 'redeem' | 'foresee' | 'touch'>;
  readonly invites: Pick<InviteRegistry, 'find' | 'close'>;
  readonly approvals: Pick<ApprovalQueue, 'request'>;
  readonly gatewayKey: () => GatewayKey;
  readonly gatewayFacts: (gatewayKey: GatewayKey) => GatewayFacts;
  /** Milliseconds since 1970. */
  readonly now: () => number;
}

export interface Confirmation {
  readonly inviteId: Uint8Array;
  /** CS, which the pairing handshake has proved. */
  readonly deviceKey: PublicKey;
  readonly body: Uint8Array;
  readonly source: Pick<SealedSource, 'transport' | 'party'>;
  /** Fires when the device has left. */
  readonly signal: AbortSignal;
}

export interface PairingDesk {
  /** @returns what the device is answered. @throws {RequestError} */
  confirm(confirmation: Confirmation): Promise<Uint8Array>;
}

/** One question to the owner, for all calls of a device that wait for the answer. */
interface Waiting {
  readonly answer: Promise<Uint8Array>;
  readonly withdrawal: AbortController;
  callers: number;
}

interface Asking {
  readonly inviteId: string;
  readonly deviceKey: PublicKey;
  readonly description: DeviceDescription;
  readonly source: Confirmation['source'];
}

export function createPairingDesk(options: DeskOptions): PairingDesk {
  const { devices, invites, approvals, now } = options;
  /** Answers that wait for the owner, by invite and device. */
  const waiting = new Map<string, Waiting>();
  const isTaken = (inviteId: string): boolean =>
    [...waiting.keys()].filter((name) => name.startsWith(`${inviteId} `)).length >= MAX_WAITING_PER_INVITE;

  const redeem = (asking: Asking): Uint8Array => {
    const gateway = options.gatewayFacts(options.gatewayKey());
    const redemption = devices.redeem({ ...asking, gateway });
    if (redemption.result === 'paired') devices.touch(redemption.device, asking.source.transport);
    return answerOf(redemption);
  };

  async function afterApproval(asking: Asking, invite: InviteRecord, signal: AbortSignal): Promise<Uint8Array> {
    const asked = isTaken(asking.inviteId)
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
    requireYes(outcome);
    return redeem(asking);
  }

  function ask(name: string, asking: Asking, invite: InviteRecord): Waiting {
    const withdrawal = new AbortController();
    const forget = (): void => {
      if (waiting.get(name) === asked) waiting.delete(name);
    };
    const answer = afterApproval(asking, invite, withdrawal.signal).finally(forget);
    const asked = { answer, withdrawal, callers: 0 };
    waiting.set(name, asked);
    // Who comes again after that is asked for anew.
    withdrawal.signal.addEventListener('abort', forget, { once: true });
    return asked;
  }

  return {
    async confirm({ inviteId, deviceKey, body, source, signal }) {
      const description = findDeviceDescription(body);
      if (description === undefined) {
        throw new RequestError(
          'bad_request',
          'A device says its name and platform, each in 1 to 64 printable characters.',
        );
      }
      const asking = { inviteId: bytesToHex(inviteId), deviceKey, description, source };
      const invite = invites.find(asking.inviteId);
      const isNew = devices.foresee(asking.inviteId, deviceKey) === 'new';
      if (!isNew || invite?.needsApproval !== true) return redeem(asking);
      const name = `${asking.inviteId} ${bytesToHex(deviceKey)}`;
      const asked = waiting.get(name) ?? ask(name, asking, invite);
      return join(asked, signal);
    },
  };
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
