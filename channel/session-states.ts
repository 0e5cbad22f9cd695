/** What may become of a session as the responder keeps it, and by what. */

/** Retired: it takes no new calls, and those that run go on. */
export type SessionState = 'pending' | 'confirmed' | 'retired' | 'gone';

/**
 * - `authenticated`: the first record of a call has opened, so both sides have the keys.
 * - `displaced`: its time is over, or another one needs its place.
 * - `ended`: by its owner or a revocation, with all its calls; or it was retired and no call is left.
 */
export type SessionEvent = 'authenticated' | 'displaced' | 'ended';

/** What is not here is refused. */
export const SESSION_TRANSITIONS: Readonly<
  Record<SessionState, Readonly<Partial<Record<SessionEvent, SessionState>>>>
> = {
  pending: { authenticated: 'confirmed', displaced: 'gone', ended: 'gone' },
  confirmed: { authenticated: 'confirmed', displaced: 'retired', ended: 'gone' },
  retired: { ended: 'gone' },
  gone: {},
};
