/** Homes that are paired with gateways that are nowhere, and invites to such. */
import { randomBytes } from 'node:crypto';
import { asInviteSecret, asPublicKey } from '../../channel/keys.ts';
import { formatGatewayId } from '../../channel/gateway-id.ts';
import { openPairingStorage } from '../../cli/paired-gateways.ts';
import { deviceEntry, type PairedDevice } from '../../clients/sdk/index.ts';
import { formatInviteCode, type InviteCode } from '../../identity/invite-code.ts';
import { silentTerminal } from './silent-terminal.ts';

/** Nobody listens there. */
export const NOWHERE = 'http://127.0.0.1:1';

export function newInvite(more: Partial<InviteCode> = {}): string {
  return formatInviteCode({
    gatewayKey: asPublicKey(randomBytes(32)),
    secret: asInviteSecret(randomBytes(16)),
    expiresAtMinute: Math.floor(Date.now() / 60_000) + 10,
    needsApproval: false,
    isForOneAgent: false,
    urls: [NOWHERE],
    ...more,
  });
}

/** Keeps a device in the home's vault, as pairing does. */
export async function keepDevice(home: string, gatewayName: string): Promise<PairedDevice> {
  const key = (): string => randomBytes(32).toString('base64url');
  const device: PairedDevice = {
    version: 1,
    deviceId: randomBytes(8).toString('hex'),
    deviceKey: key(),
    gatewayKey: key(),
    psk: key(),
    gatewayName,
    gatewayId: formatGatewayId(randomBytes(16)),
    urls: [NOWHERE],
    relays: [],
  };
  const { signal } = new AbortController();
  const environment = { SVC_IDENTITY_STORE: 'vault' };
  const context = { home, environment, terminal: silentTerminal, stop: signal, stopNow: signal };
  const { storage } = await openPairingStorage(context, Date.now());
  await storage.write(deviceEntry(device.gatewayId), JSON.stringify(device));
  return device;
}
