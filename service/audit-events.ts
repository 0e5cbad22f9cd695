/** All that the audit log can tell. */
import { approvalAuditEvents } from '../core/approvals/audit-events.ts';
import { auditLogEvents } from '../core/audit/audit-log.ts';
import { refusalAuditEvents } from '../core/audit/refusal-tally.ts';
import type { AuditEntryOf, AuditEvents } from '../core/audit/audit-entry.ts';
import { settingAuditEvents } from '../core/config/audit-events.ts';
import { mergeDeclarations } from '../core/merge-declarations.ts';
import { identityAuditEvents } from '../identity/node/audit-events.ts';

export const auditEvents = mergeDeclarations(
  identityAuditEvents,
  approvalAuditEvents,
  settingAuditEvents,
  refusalAuditEvents,
  auditLogEvents,
) satisfies AuditEvents;

export type AuditEntry = AuditEntryOf<typeof auditEvents>;
