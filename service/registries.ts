/** The audit log, the access keys and the pairings of one database, wired to each other. */
import { randomBytes } from 'node:crypto';
import { createAuditLog, type AuditLog } from '../core/audit/audit-log.ts';
import { auditEvents, type AuditEntry } from './audit-events.ts';
import type { Database } from '../storage/database.ts';
import type { Pairings } from '../gateway/access-key-source.ts';
import { createAuditSeal } from '../identity/audit-seal.ts';
import { createAccessKeyRegistry, type AccessKeyRegistry } from '../identity/node/access-key-registry.ts';
import { createDeviceRegistry } from '../identity/node/device-registry.ts';
import { createInviteRegistry } from '../identity/node/invite-registry.ts';
import type { Identity } from '../identity/node/open-identity.ts';
import type { Postpone } from '../identity/node/key-revocation.ts';

export interface Registries {
  readonly audit: AuditLog<AuditEntry>;
  readonly keys: AccessKeyRegistry;
  readonly pairings: Pairings;
}

interface RegistriesOptions {
  readonly identity: Identity;
  readonly database: Database;
  /** What went on under a grant that was replaced did not end as it should. */
  readonly onError: (error: unknown) => void;
  /** Milliseconds since 1970, by which things expire. */
  readonly now: () => number;
  readonly postpone?: Postpone | undefined;
}

export function openRegistries(options: RegistriesOptions): Registries {
  const { identity, database, onError, now, postpone } = options;
  const listeners = new Set<() => void>();
  const onChange = (): void => listeners.forEach((listener) => listener());
  const audit = createAuditLog({
    database,
    events: auditEvents,
    seal: createAuditSeal(identity.auditKey()),
    now: Date.now,
  });
  const common = { database, identity, now, randomBytes };
  const keys = createAccessKeyRegistry({ ...common, postpone, record: (event) => audit.append(event) });
  const devices = createDeviceRegistry({
    ...common,
    keys,
    record(event) {
      audit.append(event);
      // Told inside the transaction; what it tells is so when that is over.
      if (event.kind !== 'device_revoked') queueMicrotask(onChange);
    },
    onError,
  });
  const invites = createInviteRegistry({ ...common, onChange });
  const pairings: Pairings = {
    devices,
    invites,
    gatewayKey: () => identity.gatewayKey(),
    onChange: (listener) => void listeners.add(listener),
  };
  return { audit, keys, pairings };
}
