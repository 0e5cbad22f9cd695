/** What all connections of one relay share. */
import type { Admission } from './admission.ts';
import type { Directory } from './directory.ts';
import type { FairShare } from './fair-share.ts';
import type { RelayLimits } from './limits.ts';
import type { DailyQuota } from './daily-quota.ts';
import type { RelayMetrics } from './relay-metrics.ts';

/** What may be written down: never an address, a tag, a key or a byte of what is carried. */
export interface RelayEvent {
  readonly event: 'gateway' | 'gateway gone' | 'client' | 'client gone' | 'refused' | 'failed';
  /** The first four characters of the routing id. */
  readonly route?: string;
  readonly code?: number;
  readonly bytesIn?: number;
  readonly bytesOut?: number;
  /** Our own mistake: its name and where it is. */
  readonly error?: unknown;
}

/** Somebody's connection. */
export interface ConnectedPeer {
  /** Once a second. */
  keepAlive(): void;
  /** Says why, and closes. */
  refuse(code: number): void;
  /** Says that another place is to be looked for, and closes. */
  sendGoaway(code: number): void;
  /** Says that another place is to be looked for soon; what runs may go on. */
  announceDrain(): void;
}

export interface RelayContext {
  readonly origin: string;
  readonly limits: RelayLimits;
  readonly directory: Directory;
  /** As it is now: the list is read again while the relay runs. */
  readonly admission: () => Admission;
  readonly quota: DailyQuota;
  readonly metrics: RelayMetrics;
  readonly peers: Set<ConnectedPeer>;
  /** Those who have not said who they are, by address; see `networkOf`. */
  readonly unauthenticated: FairShare<ConnectedPeer>;
  /** What is held of everybody's bytes. */
  readonly held: { bytes: number };
  readonly log: (event: RelayEvent) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that only ever go on. */
  readonly elapsedMs: () => number;
  /** 0 <= n < 1 */
  readonly random: () => number;
}
