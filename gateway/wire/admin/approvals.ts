/** An approval as its owner's programs see it: in `/admin/approvals`, and in the events of `/admin/events`. */
import * as z from 'zod';
import type { Approval, ApprovalEvent } from '../../../core/approvals/approval-queue.ts';
import { encodeNamedEvent } from '../event-stream.ts';

const approvalSchema = z.object({
  id: z.string(),
  kind: z.string(),
  summary: z.string(),
  /** ISO 8601, as is `expires_at`. */
  created_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  /** To be typed on the device that asks. */
  code: z.string().optional(),
});

const outcomeSchema = z.enum(['approved', 'denied', 'expired', 'cancelled']);

/** What a program that reads the routes may rely on. */
export type WireApproval = Readonly<z.output<typeof approvalSchema>>;
export const approvalListSchema = z.object({ approvals: z.array(approvalSchema) });

/** `approval.snapshot` comes first, and once: all that wait. From there on each as it comes and as it ends. */
export const approvalEventSchema = z.discriminatedUnion('event', [
  z.object({ event: z.literal('approval.snapshot'), approvals: z.array(approvalSchema) }),
  z.object({ event: z.literal('approval.added'), approval: approvalSchema }),
  z.object({ event: z.literal('approval.settled'), approval: approvalSchema, outcome: outcomeSchema }),
]);
export type WireApprovalEvent = Readonly<z.output<typeof approvalEventSchema>>;

export function encodeApprovals(approvals: readonly Approval[]): z.output<typeof approvalListSchema> {
  return { approvals: approvals.map(encodeApproval) };
}

function encodeApproval({ id, kind, summary, createdAt, expiresAt, code }: Approval): WireApproval {
  const shown = { id, kind, summary, created_at: timeText(createdAt), expires_at: timeText(expiresAt) };
  return code === undefined ? shown : { ...shown, code };
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

export function encodeSnapshotEvent(approvals: readonly Approval[]): string {
  return encodeNamedEvent('approval.snapshot', encodeApprovals(approvals));
}

export function encodeApprovalEvent(event: ApprovalEvent): string {
  const approval = encodeApproval(event.approval);
  return event.type === 'added'
    ? encodeNamedEvent('approval.added', { approval })
    : encodeNamedEvent('approval.settled', { approval, outcome: event.outcome });
}
