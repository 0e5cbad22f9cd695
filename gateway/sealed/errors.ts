/** What may go wrong in the secure channel, and where devices are paired, and the status of each. */
export const sealedErrors = {
  already_dispatched: 409,
  channel_unavailable: 503,
  idempotency_key_reused: 422,
  invite_over: 410,
  invite_used: 409,
  pairing_denied: 403,
  records_gone: 410,
  too_many_invites: 409,
} as const;
