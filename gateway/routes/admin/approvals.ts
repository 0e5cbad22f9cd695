/** `/admin/approvals` and `/admin/events`: what waits for the owner's word, and the owner's word. */
import * as z from 'zod';
import type { ApprovalOutcome, DecisionResult } from '../../../core/approvals/approval-queue.ts';
import { ServiceError } from '../../../core/errors.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';
import { encodeApprovals } from '../../wire/admin/approvals.ts';
import { eventStream } from '../../wire/event-stream.ts';

const decisionBody = z.strictObject({ decision: z.enum(['approve', 'deny']) });

export const listApprovals = adminRoute({
  method: 'GET',
  path: '/admin/approvals',
  summary: 'What waits for the owner: id, kind, summary, when it was asked and when it ends as a no; the oldest first.',
  handle: (_request, { approvals }: Pick<Services, 'approvals'>) => ({ body: encodeApprovals(approvals.list()) }),
});

export const decideApproval = adminRoute({
  method: 'POST',
  path: '/admin/approvals/:id',
  summary: 'Approve or deny; answers with the outcome, or 409 where it was settled before.',
  body: decisionBody,
  handle({ params, json }, { approvals }: Pick<Services, 'approvals'>) {
    const { decision } = parseBody(decisionBody, json());
    const id = params['id'] ?? '';
    const outcome = decision === 'approve' ? 'approved' : 'denied';
    const refusal = refusalOf(approvals.decide(id, outcome));
    if (refusal !== undefined) throw refusal;
    return { body: { id, outcome } };
  },
});

function refusalOf(decided: DecisionResult): RequestError | undefined {
  switch (decided.result) {
    case 'done':
      return undefined;
    case 'unknown':
      return new RequestError('not_found', 'No approval has this id, or it was settled long ago.');
    case 'settled':
      return new RequestError('approval_settled', SETTLED[decided.outcome]);
    case 'needs_code':
      return new RequestError(
        'approval_needs_code',
        'Its code approves this one: type it on the device that asks. Here it can only be denied.',
      );
  }
}

const SETTLED: Readonly<Record<ApprovalOutcome, string>> = {
  approved: 'This was settled before: it was approved.',
  denied: 'This was settled before: it was denied.',
  expired: 'This was settled before: its time ran out, which is a no.',
  cancelled: 'This was withdrawn before: whoever asked has left, or can no longer be given what it asked for.',
};

export const approvalEvents = adminRoute({
  method: 'GET',
  path: '/admin/events',
  summary:
    'Server-sent events: approval.snapshot with all that wait, then approval.added and approval.settled as they happen.',
  handle({ signal, headers }, { approvalFeed }: Pick<Services, 'approvalFeed'>) {
    const lastEventId = headers['last-event-id'];
    const reader = approvalFeed.open({
      signal,
      lastEventId: typeof lastEventId === 'string' ? lastEventId : undefined,
    });
    if (reader === undefined)
      throw new ServiceError('overloaded', 'Too many programs watch the approvals. Stop one of them, and try again.');
    return { headers: eventStream.headers, body: reader.events, cut: reader.cut };
  },
});
