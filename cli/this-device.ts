/** This machine as a device of gateways elsewhere: what it is called there, and what is said when it is paired. */
import { hostname } from 'node:os';
import type { PairedDevice } from '../clients/sdk/index.ts';
import { quoted } from '../core/printable.ts';
import { isLabel, MAX_LABEL_CHARACTERS } from '../identity/access-claims.ts';
import { UsageError, type CommandContext } from './command.ts';
import type { PairedGateway } from './paired-gateways.ts';

/** @param flag of `--name`. @throws {UsageError} */
export function nameOf(flag: unknown): string {
  if (flag === undefined) {
    const name = Array.from(hostname()).slice(0, MAX_LABEL_CHARACTERS).join('');
    return isLabel(name) ? name : 'laptop';
  }
  if (typeof flag === 'string' && isLabel(flag)) return flag;
  throw new UsageError('--name: expected 1 to 64 characters that can be shown as they are.');
}

/** @param before what this machine was paired with until then */
export function report(
  { gatewayId, gatewayName, deviceId, urls, bearerKey }: PairedDevice,
  before: readonly PairedGateway[],
  asJson: boolean,
  { terminal }: CommandContext,
): void {
  const replaced = before.find((gateway) => gateway.gatewayId === gatewayId && gateway.deviceId !== deviceId)?.deviceId;
  if (asJson) {
    const shown = { gateway_id: gatewayId, gateway_name: gatewayName, device_id: deviceId, urls };
    terminal.print(JSON.stringify({ ...shown, replaced_device_id: replaced ?? null }));
    // A person reads it in the words below.
  } else if (!terminal.isInteractive) terminal.print(deviceId);
  terminal.say(`Paired with ${quoted(gatewayName)} as device ${deviceId}. "postern connect" brings its models here.`);
  if (bearerKey !== undefined) terminal.say('A plain access key came with it: "postern gateways key" prints it.');
  if (replaced === undefined) return;
  terminal.say(
    `It takes the place of device ${replaced}, which counts at home until "postern devices revoke ${replaced}" there. ` +
      'Where "postern connect" runs, stop it and start it again: it knows the old one.',
  );
}
