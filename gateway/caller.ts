/**
 * Who is calling. Made once for each request, passed along with it, never inferred a second time.
 */
import type { Provenance } from './guard.ts';

/** An agent's address: `0x` and 40 hexadecimal digits. */
export type AgentAddress = `0x${string}`;

export interface Caller {
  /** How the request got here. `loopback` is this machine and nothing that only looks like it. */
  readonly transport: 'loopback' | 'lan' | 'relay';
  /** True inside a call of the secure channel. */
  readonly sealed: boolean;
  /** What it proved itself with. */
  readonly credential: 'none' | 'key' | 'device';
  /** What it may act for: `owner` is whoever sits at this machine, `nobody` an anonymous remote caller. */
  readonly scope: 'owner' | 'master' | 'nobody' | AgentAddress;
}

/** The caller of a request that arrived on a listening socket and brought no credential. */
export function socketCaller({ isLoopback }: Provenance): Caller {
  return isLoopback
    ? { transport: 'loopback', sealed: false, credential: 'none', scope: 'owner' }
    : { transport: 'lan', sealed: false, credential: 'none', scope: 'nobody' };
}
