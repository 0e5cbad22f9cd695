/** How long sessions last and how many there may be. */
export interface SessionLimits {
  /** A session whose keys nobody has confirmed. */
  readonly pendingMs: number;
  readonly pendingPerKey: number;
  readonly pending: number;
  readonly confirmedPerKey: number;
  readonly confirmed: number;
  /** Of a session. */
  readonly openCalls: number;
  /** Of a static key, in all of its sessions, those included that only end their calls. */
  readonly openCallsPerKey: number;
  /** No new calls after this, and none after being idle for so long. */
  readonly expiresAfterMs: number;
  readonly idleAfterMs: number;
  /** When the initiator should make a new session by itself. */
  readonly rekeyAfterMs: number;
  /** Calls that still run then are ended. */
  readonly streamsEndAfterMs: number;
}

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Whoever steals the keys of a session is out after two hours; the client leaves it after one. */
export const SESSION_LIMITS: SessionLimits = {
  pendingMs: 30 * SECOND_MS,
  pendingPerKey: 8,
  pending: 64,
  confirmedPerKey: 4,
  confirmed: 256,
  openCalls: 32,
  openCallsPerKey: 128,
  expiresAfterMs: 2 * HOUR_MS,
  idleAfterMs: 30 * MINUTE_MS,
  rekeyAfterMs: HOUR_MS,
  streamsEndAfterMs: 6 * HOUR_MS,
};
