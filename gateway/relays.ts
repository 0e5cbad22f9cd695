/** The relays that this gateway holds a way to, as its devices are told of them and as its owner sees them. */
import * as z from 'zod';
import { formatBase32 } from '../identity/base32.ts';
import type { InviteRelay } from '../identity/invite-code.ts';

export interface RelayState extends InviteRelay {
  /** `connected` only when bytes of ours came back through it. */
  readonly phase: 'connected' | 'connecting' | 'waiting';
  /** Milliseconds since 1970. */
  readonly sinceMs: number;
  /** While it waits: when it dials again. */
  readonly retryAtMs?: number | undefined;
  /** Why it was not connected last, in plain words. */
  readonly lastError?: string | undefined;
  /** Another gateway registers with the same key. */
  readonly isContested: boolean;
  readonly bytesIn: number;
  readonly bytesOut: number;
}

export interface Relays {
  /** In the order in which they were named; none before the identity is open. */
  list(): readonly RelayState[];
}

export const relayResourceSchema = z.object({
  origin: z.string(),
  /** What the relay's operator can admit it by. */
  routing_id: z.string(),
  state: z.enum(['connected', 'connecting', 'waiting']),
  since: z.string(),
  retry_at: z.string().nullable(),
  error: z.string().nullable(),
  contested: z.boolean(),
  bytes_in: z.int(),
  bytes_out: z.int(),
});

export type RelayResource = Readonly<z.output<typeof relayResourceSchema>>;

export function encodeRelay(relay: RelayState): RelayResource {
  const { origin, routingId, phase, sinceMs, retryAtMs, lastError, isContested, bytesIn, bytesOut } = relay;
  return {
    origin,
    routing_id: formatBase32(routingId).toLowerCase(),
    state: phase,
    since: new Date(sinceMs).toISOString(),
    retry_at: retryAtMs === undefined ? null : new Date(retryAtMs).toISOString(),
    error: phase === 'connected' ? null : (lastError ?? null),
    contested: isContested,
    bytes_in: bytesIn,
    bytes_out: bytesOut,
  };
}
