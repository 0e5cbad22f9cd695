/** What makes a device one that counts, whatever it came with: its row, its grant and what it is told. */
import { bytesToHex } from '@noble/hashes/utils.js';
import { PROTOCOL_VERSION } from '../../channel/envelope.ts';
import { asPsk, KEY_BYTES, type PublicKey } from '../../channel/keys.ts';
import type { Database } from '../../storage/database.ts';
import { isLabel, MAX_LABEL_CHARACTERS, type Scope } from '../access-claims.ts';
import { encodePairingGrant, type DeviceDescription, type GatewayFacts } from '../pairing.ts';
import type { ColumnCipher, RandomBytes } from '../sealed-column.ts';
import type { AccessKeyRegistry } from './access-key-registry.ts';
import { pskPlace, recordOf, type DeviceRecord, type DeviceTable } from './device-table.ts';

const DEVICE_ID_BYTES = 8;
const BEARER_MARK = ' (bearer)';

export interface NewPairing {
  /** For the device: an encoded `PairingGrant`. */
  readonly answer: Uint8Array;
  readonly device: DeviceRecord;
}

export interface DeviceParams {
  /** CS, which the pairing handshake has proved. */
  readonly deviceKey: PublicKey;
  readonly description: DeviceDescription;
  readonly gateway: GatewayFacts;
}

/** What happened to a device, for the audit log. */
export type DeviceEvent =
  | { readonly kind: 'device_paired'; readonly deviceId: string; readonly name: string; readonly scope: Scope }
  | { readonly kind: 'device_revoked'; readonly deviceId: string };

export interface DevicePairingOptions {
  readonly database: Database;
  readonly keys: Pick<AccessKeyRegistry, 'create' | 'markRevoked' | 'endUnder'>;
  readonly randomBytes: RandomBytes;
  /** Called inside the transaction of what it tells; where it throws, nothing happened. */
  readonly record: (event: DeviceEvent) => void;
  /** What went on under the grant that a new pairing replaced did not end as it should. */
  readonly onError: (error: unknown) => void;
}

export interface NewDeviceOptions extends DevicePairingOptions {
  readonly devices: DeviceTable;
  readonly cipher: ColumnCipher;
  readonly nowS: () => number;
}

export interface DirectPairing {
  /**
   * Pairs a device without an invite, which another way of proving itself stands for: the device, its grant and the audit
   * entry are one transaction. What it is told is not kept.
   * @param agentIndex the agent that it will be good for; every one, where none is named
   */
  admit(params: DeviceParams, agentIndex: number | undefined): NewPairing;
}

/** What the owner lets a device have. */
export interface DeviceTerms {
  /** Every agent, where none is named. */
  readonly agentIndex: number | undefined;
  readonly withBearerKey: boolean;
}

interface NewDevice extends NewPairing {
  /** The keys that count no more. */
  readonly replaced: readonly string[];
}

/** Pairs a device that the owner has let in by something else than an invite. */
export function createDirectPairing(options: NewDeviceOptions): DirectPairing {
  const admit = options.database.transaction((params: DeviceParams, terms: DeviceTerms) =>
    addDevice(params, terms, options),
  );
  return {
    admit(params, agentIndex) {
      assertValid(params.description);
      const { replaced, ...paired } = admit.immediate(params, { agentIndex, withBearerKey: false });
      endReplaced(replaced, options);
      return paired;
    },
  };
}

/** Inside a transaction. */
export function addDevice(params: DeviceParams, terms: DeviceTerms, options: NewDeviceOptions): NewDevice {
  const { devices, cipher, record, randomBytes } = options;
  const { deviceKey, description, gateway } = params;
  // Two devices with one static key can't be told apart: the new pairing is the one that counts.
  const replaced = revokeBefore(params, options);
  const deviceId = bytesToHex(randomBytes(DEVICE_ID_BYTES));
  const psk = asPsk(randomBytes(KEY_BYTES));
  const { grant, bearer } = makeKeys(params, terms, options.keys);
  devices.insert({
    id: deviceId,
    staticKey: deviceKey,
    kid: grant.key.kid,
    bearerKid: bearer?.key.kid ?? null,
    name: description.name,
    platform: description.platform,
    model: description.model ?? null,
    protocolVersion: PROTOCOL_VERSION,
    pairedAtS: options.nowS(),
    psk: cipher.seal(pskPlace(deviceId), psk),
  });
  const answer = encodePairingGrant({
    deviceId,
    psk,
    grant: grant.token,
    ...(bearer === undefined ? {} : { bearerKey: bearer.token }),
    ...gateway,
  });
  record({ kind: 'device_paired', deviceId, name: description.name, scope: grant.key.scope });
  const device = devices.find(deviceId);
  if (device === undefined) throw new Error('the device is not there that was just written');
  return { answer, device: recordOf(device), replaced };
}

/** After the transaction: ends what goes on under the keys that a new pairing has replaced. */
export function endReplaced(replaced: readonly string[], { keys, onError }: NewDeviceOptions): void {
  if (replaced.length > 0) keys.endUnder(replaced).catch(onError);
}

/** @returns the keys that count no more */
function revokeBefore({ deviceKey }: DeviceParams, { devices, keys, nowS }: NewDeviceOptions): readonly string[] {
  const before = devices.findActive(deviceKey, nowS());
  return before === undefined ? [] : keys.markRevoked([before.kid]);
}

type MadeKey = ReturnType<AccessKeyRegistry['create']>;

function makeKeys(
  { deviceKey, description: { name } }: DeviceParams,
  { agentIndex, withBearerKey }: DeviceTerms,
  keys: Pick<AccessKeyRegistry, 'create'>,
): { readonly grant: MadeKey; readonly bearer: MadeKey | undefined } {
  const scope = { agentIndex, lifetimeS: null };
  const grant = keys.create({ ...scope, device: deviceKey, label: name });
  const bearer = withBearerKey ? keys.create({ ...scope, label: bearerLabel(name) }) : undefined;
  return { grant, bearer };
}

function bearerLabel(name: string): string {
  const room = MAX_LABEL_CHARACTERS - BEARER_MARK.length;
  return Array.from(name).slice(0, room).join('') + BEARER_MARK;
}

/** @throws RangeError */
export function assertValid({ name, platform, model }: DeviceDescription): void {
  const texts = [name, platform, ...(model === undefined ? [] : [model])];
  if (!texts.every(isLabel)) throw new RangeError('no device can describe itself like this');
}
