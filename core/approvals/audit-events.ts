/** What the audit log is told of approvals. */
export const approvalAuditEvents = {
  approval_settled: { id: 'name', approvalKind: 'name', outcome: 'name' },
} as const;
