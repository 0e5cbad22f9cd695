/** The pairings of a folder, wired as the program wires them, with keys that are known. */
import { randomBytes } from 'node:crypto';
import { deriveInviteKeys } from '../../../channel/invite.ts';
import { asPublicKey, type InviteSecret, type PublicKey } from '../../../channel/keys.ts';
import { nobleCrypto } from '../../../channel/noble.ts';
import { createAuditLog, verifyAuditLog, type AuditVerdict } from '../../../core/audit/audit-log.ts';
import { auditEvents } from '../../../service/audit-events.ts';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { deriveAgentKey } from '../../../identity/agent-key.ts';
import { createAuditSeal } from '../../../identity/audit-seal.ts';
import { createAccessKeyRegistry, type AccessKeyRegistry } from '../../../identity/node/access-key-registry.ts';
import { createDeviceRegistry, type DeviceRegistry } from '../../../identity/node/device-registry.ts';
import type { DeviceEvent } from '../../../identity/node/new-device.ts';
import { createInviteRegistry, type InviteRegistry } from '../../../identity/node/invite-registry.ts';
import type { GatewayFacts } from '../../../identity/pairing.ts';
import { asAuditKey, asColumnKey, asMasterKey } from '../../../identity/secret-keys.ts';

const master = asMasterKey(new Uint8Array(32).fill(7));
const columns = asColumnKey(new Uint8Array(32).fill(5));
const seal = createAuditSeal(asAuditKey(new Uint8Array(32).fill(3)));
const identity = {
  masterKey: () => master,
  agentKey: (index: number) => deriveAgentKey(master, index),
  columnKey: () => columns,
};

export const gateway: GatewayFacts = {
  gatewayName: 'home',
  gatewayId: '0000 1111 2222 3333 4444 5555 6666 7777',
  relays: [],
  urls: ['http://192.0.2.1:1337'],
};
export const description = { name: 'phone', platform: 'android', model: 'Pixel' } as const;

export interface PairingsOfHome {
  readonly database: Database;
  readonly keys: AccessKeyRegistry;
  readonly devices: DeviceRegistry;
  readonly invites: InviteRegistry;
  readonly verifyAudit: () => AuditVerdict;
}

interface Opening {
  readonly now?: () => number;
  /** Runs before a device's event is written. */
  readonly onDeviceEvent?: (event: DeviceEvent) => void;
}

export function openPairings(home: string, { now = Date.now, onDeviceEvent }: Opening = {}): PairingsOfHome {
  const database = openDatabase(home);
  const audit = createAuditLog({ database, events: auditEvents, seal, now });
  const common = { database, identity, now, randomBytes };
  const keys = createAccessKeyRegistry({ ...common, record: (event) => audit.append(event) });
  const record = (event: DeviceEvent): void => {
    onDeviceEvent?.(event);
    audit.append(event);
  };
  const onError = (error: unknown): never => {
    throw error;
  };
  return {
    database,
    keys,
    devices: createDeviceRegistry({ ...common, keys, record, onError }),
    invites: createInviteRegistry(common),
    verifyAudit: () => verifyAuditLog({ database, events: auditEvents, seal }),
  };
}

/** CS of the device with this number. */
export const deviceKeyOf = (number: number): PublicKey => asPublicKey(new Uint8Array(32).fill(number));

const crypto = nobleCrypto(randomBytes);
export const inviteKeysOf = (secret: InviteSecret) => deriveInviteKeys(crypto, secret);
