/** Invites of a service in this process, as `postern invite` would make them. */
import { asPublicKey } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import type { InviteWish } from '../../identity/node/invite-registry.ts';
import type { ServiceHere } from './service-here.ts';

export async function newInvite({ running, url }: ServiceHere, wish: InviteWish = {}): Promise<InviteCode> {
  const pairings = await running.identity.openPairings();
  const { secret, invite } = pairings.invites.create(wish);
  return {
    gatewayKey: asPublicKey(gatewayCrypto('node').x25519(pairings.gatewayKey()).publicKey),
    secret,
    expiresAtMinute: Math.ceil(invite.expiresAtS / 60),
    needsApproval: invite.needsApproval,
    isForOneAgent: invite.agentIndex !== undefined,
    urls: [url],
  };
}
