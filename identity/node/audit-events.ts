/** What the audit log is told of keys, devices and the identity. A `scope` is `master` or an agent's address. */
export const identityAuditEvents = {
  key_created: {
    kid: 'name',
    scope: 'name',
    label: 'label or null',
    expiresAtS: 'count or null',
    isDeviceGrant: 'flag',
  },
  key_revoked: { kid: 'name' },
  device_paired: { deviceId: 'name', name: 'label', scope: 'name' },
  device_revoked: { deviceId: 'name' },
  identity_restored: { address: 'name' },
} as const;
