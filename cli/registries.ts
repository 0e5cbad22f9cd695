/** The audit log, the access keys and the pairings of one database, wired to each other. */
import { randomBytes } from 'node:crypto';
import { createAuditLog, type AuditLog } from '../core/audit/audit-log.ts';
import { lockHome } from '../core/config/home.ts';
import { migrate, openDatabase, type Database } from '../core/storage/database.ts';
import { durableNow } from '../core/storage/durable-clock.ts';
import type { Pairings } from '../gateway/access-key-source.ts';
import { createAuditSeal } from '../identity/audit-seal.ts';
import { createAccessKeyRegistry, type AccessKeyRegistry } from '../identity/node/access-key-registry.ts';
import { createDeviceRegistry } from '../identity/node/device-registry.ts';
import { createInviteRegistry } from '../identity/node/invite-registry.ts';
import { openOrCreateIdentity, type Identity } from '../identity/node/open-identity.ts';
import type { Postpone } from '../identity/node/key-revocation.ts';
import { CommandError, type CommandContext } from './command.ts';
import { identityOptions } from './identity-options.ts';

export interface Registries {
  readonly audit: AuditLog;
  readonly keys: AccessKeyRegistry;
  readonly pairings: Pairings;
}

interface RegistriesOptions {
  readonly identity: Identity;
  readonly database: Database;
  /** What went on under a grant that was replaced did not end as it should. */
  readonly onError: (error: unknown) => void;
  /** Called when another device, or another invite, may come. Revocations are told by `keys.onRevocation`. */
  readonly onChange?: () => void;
  /** Milliseconds since 1970, by which things expire. */
  readonly now: () => number;
  readonly postpone?: Postpone | undefined;
}

export function openRegistries(options: RegistriesOptions): Registries {
  const { identity, database, onError, now, postpone } = options;
  const listeners = new Set(options.onChange === undefined ? [] : [options.onChange]);
  const onChange = (): void => listeners.forEach((listener) => listener());
  const audit = createAuditLog({ database, seal: createAuditSeal(identity.auditKey()), now: Date.now });
  const common = { database, migrate, identity, now, randomBytes };
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

/**
 * Only while no server can start: the identity may have to be made, and a stream under a key must not go on.
 * @throws {CommandError} where one runs
 */
export async function withRegistries<Result>(
  context: CommandContext,
  use: (registries: Registries) => Promise<Result> | Result,
): Promise<Result> {
  const lock = lockHome(context.home);
  if (lock === undefined) {
    throw new CommandError('the service runs, but does not answer. Try again; if it goes on, "postern stop" ends it.');
  }
  try {
    const identity = await openOrCreateIdentity(await identityOptions(context));
    const database = openDatabase(context.home);
    try {
      const now = (): number => durableNow(database, Date.now());
      return await use(openRegistries({ identity, database, onError: () => undefined, now }));
    } finally {
      database.close();
    }
  } finally {
    lock.release();
  }
}
