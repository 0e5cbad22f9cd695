/** What waits for the owner's word, and who watches it. */
import { randomBytes } from 'node:crypto';
import { createApprovalQueue, type ApprovalQueue } from '../core/approvals/approval-queue.ts';
import { plannedApprovals } from '../core/approvals/planned-kinds.ts';
import { mergeDeclarations } from '../core/merge-declarations.ts';
import { pairingApproval } from '../gateway/sealed/approval-kinds.ts';
import { setProcessTimer } from '../core/timer.ts';
import { createApprovalFeed, type ApprovalFeed } from '../gateway/approval-feed.ts';
import { reasonOf } from './internal-error.ts';
import type { IdentityService } from './identity-service.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

export const approvalKinds = mergeDeclarations(pairingApproval, plannedApprovals);

export interface Approvals {
  readonly approvals: ApprovalQueue<keyof typeof approvalKinds>;
  readonly approvalFeed: ApprovalFeed;
}

export function openApprovals(
  { say, stopping }: Start,
  { audit, storage, events }: Pick<IdentityService, 'audit'> & Pick<Storage, 'storage' | 'events'>,
): Approvals {
  const approvals = createApprovalQueue({
    kinds: approvalKinds,
    now: Date.now,
    setTimer: setProcessTimer,
    newId: () => randomBytes(8).toString('hex'),
    record: ({ id, kind }, outcome) => audit.append({ kind: 'approval_settled', id, approvalKind: kind, outcome }),
    onError(error) {
      storage.note(error);
      say(`An approval that was denied or expired could not be written to the audit log${reasonOf(error)}.`);
    },
  });
  const approvalFeed = createApprovalFeed(approvals, events);
  // Before the readers' end, so that they hear of it.
  stopping.addEventListener('abort', () => approvals.close(), { once: true });
  return { approvals, approvalFeed };
}
