/** Invites, as `postern invite` makes them. */
import { asPublicKey } from '../../channel/keys.ts';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import type { InviteCode } from '../../identity/invite-code.ts';
import type { InviteParams } from '../../identity/node/invite-registry.ts';
import { fetchOn, type Machine } from './network.ts';
import type { TestServer } from './server.ts';
import type { ServiceHere } from './service-here.ts';

/** Of a service in this process. */
export async function newInvite({ running, url }: ServiceHere, params: InviteParams = {}): Promise<InviteCode> {
  const pairings = await running.identity.openPairings();
  const { secret, invite } = pairings.invites.create(params);
  return {
    gatewayKey: asPublicKey(gatewayCrypto('node').x25519(pairings.gatewayKey()).publicKey),
    secret,
    expiresAtMinute: Math.ceil(invite.expiresAtS / 60),
    needsApproval: invite.needsApproval,
    isForOneAgent: invite.agentIndex !== undefined,
    urls: [url],
  };
}

const ASKING = { method: 'POST', headers: { 'content-type': 'application/json' } };
const codeIn = (answer: unknown): string => (answer as { code: string }).code;

/** The text of one that its owner asks the server for. */
export async function askForInvite({ url }: TestServer, params: object = {}): Promise<string> {
  return codeIn(await (await fetch(`${url}/admin/invites`, { ...ASKING, body: JSON.stringify(params) })).json());
}

/** The same on the machine where the server is. */
export async function askForInviteOn(machine: Machine, { url }: TestServer, params: object = {}): Promise<string> {
  const answer = await fetchOn(machine, `${url}/admin/invites`, { ...ASKING, body: JSON.stringify(params) });
  return codeIn(JSON.parse(answer.body));
}
