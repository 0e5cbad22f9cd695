/**
 * Who is calling. Made once for each request, passed along with it, never inferred a second time.
 */

/** An agent's address: `0x` and 40 hexadecimal digits. */
export type AgentAddress = `0x${string}`;

export interface Caller {
  /** How the request got here. `loopback` is this machine and nothing that only looks like it. */
  readonly transport: 'loopback' | 'lan' | 'relay';
  /** True inside a call of the secure channel. */
  readonly sealed: boolean;
  /** What it proved itself with. */
  readonly credential: 'none' | 'key' | 'device';
  /** What it may act for: `owner` is whoever sits at this machine, `nobody` a caller that is not known. */
  readonly scope: 'owner' | 'master' | 'nobody' | AgentAddress;
  /** The name of the access key, of a caller that has one. */
  readonly keyId?: string;
}

/** What makes a caller known: being the owner at this machine, an access key that counts, or nothing. */
export type Proof = 'owner' | 'nothing' | { readonly scope: 'master' | AgentAddress; readonly keyId: string };

export function callerOf(where: Pick<Caller, 'transport' | 'sealed'>, proof: Proof): Caller {
  if (proof === 'owner') return { ...where, credential: 'none', scope: 'owner' };
  return proof === 'nothing'
    ? { ...where, credential: 'none', scope: 'nobody' }
    : { ...where, credential: 'key', ...proof };
}

/** Whose what a caller leaves behind is: one key's is not another's, though both be good for the same. */
export function ownerOf({ keyId, scope }: Caller): string {
  return keyId === undefined ? scope : `key ${keyId}`;
}

/** As the log and the waiting line know a caller. */
export function callerName({ transport, credential, scope, keyId }: Caller): string {
  if (keyId !== undefined) return `key ${keyId}`;
  if (credential !== 'none') return `${credential} ${scope}`;
  return transport === 'loopback' && scope === 'owner' ? 'loopback' : 'anonymous';
}
