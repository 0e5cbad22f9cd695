/**
 * Who holds which routing id. One node keeps it in memory; several would ask each other, which is why every answer is a
 * promise and what is found says no more than what a node elsewhere could be asked for.
 */
import type { ClientSide } from './client-side.ts';
import type { FairRate } from './fair-rate.ts';
import type { TagGrant } from './tag-list.ts';

/** A gateway that is connected, here or elsewhere. */
export interface HeldGateway {
  /** Of its registration: the newest proof wins. */
  readonly epoch: number;
  /** Another connection took its place. */
  replace(): void;
  /** Of this gateway's clients, by their tags. */
  readonly rate: FairRate;
  /** What a tag opens; `undefined` for one that doesn't count. Never reaches the gateway itself. */
  findTag(tag: Uint8Array): TagGrant | undefined;
  /** Takes a client in that `findTag` let in, or refuses it. */
  attach(client: ClientSide): void;
  detach(client: ClientSide): void;
  /** Begins a stream for a client. @returns false if it was refused, and the client told */
  openStream(client: ClientSide, request: { readonly id: number; readonly op: number }): boolean;
}

export interface Directory {
  /** The new one takes the id over, and the old one is told so. @returns false if the new one's epoch isn't higher */
  claim(routingId: string, gateway: HeldGateway): Promise<boolean>;
  find(routingId: string): Promise<HeldGateway | undefined>;
  /** Does nothing if another holds it by now. */
  release(routingId: string, gateway: HeldGateway): void;
}

export function createDirectory(): Directory {
  const gateways = new Map<string, HeldGateway>();
  return {
    claim: async (routingId, gateway) => {
      const holder = gateways.get(routingId);
      if (holder !== undefined && gateway.epoch <= holder.epoch) return false;
      gateways.set(routingId, gateway);
      holder?.replace();
      return true;
    },
    find: async (routingId) => gateways.get(routingId),
    release: (routingId, gateway) => {
      if (gateways.get(routingId) === gateway) gateways.delete(routingId);
    },
  };
}
