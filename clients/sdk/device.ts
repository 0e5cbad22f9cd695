/** What a device keeps of a gateway that it was paired with: enough to come back, from anywhere that leads there. */
import type { InviteRelay } from '../../identity/invite-code.ts';

/** All of it is secret; it is for the platform's credential store. Byte strings are base64url, so that it is JSON. */
export interface PairedDevice {
  readonly version: 1;
  readonly deviceId: string;
  /** cs, the secret half of the device's static key. It never leaves the device. */
  readonly deviceKey: string;
  /** GS, which the invite vouched for. */
  readonly gatewayKey: string;
  readonly psk: string;
  readonly gatewayName: string;
  /** See `formatGatewayId`. */
  readonly gatewayId: string;
  /** Tried in this order. */
  readonly urls: readonly string[];
  readonly relays: readonly (Pick<InviteRelay, 'origin'> & { readonly rid: string })[];
}
