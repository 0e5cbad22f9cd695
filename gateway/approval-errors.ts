/** What may go wrong with an approval, and the status of each. */
export const approvalErrors = {
  approval_expired: 408,
  approval_needs_code: 409,
  approval_settled: 409,
  too_many_approvals: 429,
} as const;
