/** Kinds whose rooms are still to come; each goes along with its room. */
export const plannedApprovals = {
  tool_permission: { maxPending: 100 },
  spend: { maxPending: 20 },
  high_risk_config: { maxPending: 5 },
} as const;
