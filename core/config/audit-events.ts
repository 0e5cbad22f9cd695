/** What the audit log is told of settings: never the value. */
export const settingAuditEvents = { setting_changed: { name: 'name' } } as const;
