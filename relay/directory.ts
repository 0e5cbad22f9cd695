/**
 * Who holds which routing id, and the links that lead there. A client's node knows its socket; all else about a client
 * (what it may do, how fast, its streams) is at the node of its gateway, `gateway-client.ts`. The two tell each other
 * what is below, and nothing else: plain data, so that it can go from one machine to another. Here is the directory of
 * one node, where telling is calling.
 *
 *     client's node                      gateway's node
 *        attach      ───────────────────────►           find the tag, make room
 *                    ◄───────────────────────  attached    the client is told that it has joined
 *        frame       ◄──────────────────────►  frame       in the order in which they were sent
 *        full, clear ───────────────────────►              the client's socket takes no more, takes it again
 *                    ◄───────────────────────  pause, resume   whether the client's socket is read from
 *        detach      ◄──────────────────────►  detach      the last word of either side; for attached: refused
 */
import { RELAY_CODE } from './wire/codes.ts';
import type { Frame } from './wire/frame.ts';

/** A gateway's registration: its epoch is higher than in any before, so that both together name one. */
export interface Claim {
  readonly routingId: string;
  readonly epoch: number;
}

/** What a client is told when it has joined. */
export type JoinTerms = Omit<Extract<Frame, { readonly type: 'joined' }>, 'type'>;

/** The first is `attach`, and nothing follows before its answer. */
export type ToGateway =
  /** @property address where the client comes from; see `networkOf` */
  | { readonly type: 'attach'; readonly tag: Uint8Array; readonly address: string }
  /** One whole frame, neither PING nor PONG. Whoever gets it may change it and pass it on. */
  | { readonly type: 'frame'; readonly bytes: Uint8Array }
  /** What was sent before `full` was heard still comes: no more than the credit of the client's connection. */
  | { readonly type: 'full' | 'clear' }
  | { readonly type: 'detach' };

export type ToClient =
  | { readonly type: 'attached'; readonly terms: JoinTerms }
  | { readonly type: 'frame'; readonly bytes: Uint8Array }
  | { readonly type: 'pause' | 'resume' }
  | { readonly type: 'detach'; readonly code: number };

/** Where messages go. They arrive in order, at once or later; those after `detach` go nowhere. */
export type Send<Message> = (message: Message) => void;

/** What a node does for a routing id that it claimed. */
export interface Holder {
  /** Another connection took its place. */
  replaced(): void;
  /** A link to a client. @returns what takes the client's messages */
  link(toClient: Send<ToClient>): Send<ToGateway>;
}

export interface Directory {
  /** The new one takes the id over, and the old one is told so. @returns false if the new one's epoch isn't higher */
  claim(claim: Claim, holder: Holder): Promise<boolean>;
  /** Does nothing if another claim holds it by now. */
  release(claim: Claim): void;
  /**
   * Opens a link to whoever holds a routing id. Where nobody does, or the other node is lost, the link says `detach`
   * with `offline`.
   */
  link(routingId: string, toClient: Send<ToClient>): Promise<Send<ToGateway>>;
}

export function createDirectory(): Directory {
  const held = new Map<string, { readonly epoch: number; readonly holder: Holder }>();
  return {
    claim: async ({ routingId, epoch }, holder) => {
      const old = held.get(routingId);
      if (old !== undefined && epoch <= old.epoch) return false;
      held.set(routingId, { epoch, holder });
      old?.holder.replaced();
      return true;
    },
    release: ({ routingId, epoch }) => {
      if (held.get(routingId)?.epoch === epoch) held.delete(routingId);
    },
    link: async (routingId, toClient) => {
      const toGateway = held.get(routingId)?.holder.link(toClient);
      return toGateway ?? (() => toClient({ type: 'detach', code: RELAY_CODE.offline }));
    },
  };
}
