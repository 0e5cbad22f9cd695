/**
 * Notices that a connection is dead though nobody said so: a PING every 20 s ± 3 s, and an end after 45 s in which no
 * frame came. Frames of our own, because a browser sends no WebSocket pings.
 */

export const PING_EVERY_MS = 20_000;
export const PING_SPREAD_MS = 3_000;
export const DEAD_AFTER_MS = 45_000;
/** How often it is looked; the machine slept if the clock says that much more than this went by. */
const LOOK_EVERY_MS = 5_000;
const SLEPT_MS = 30_000;
/** After sleep the other side has this long to show that it is still there. */
const AFTER_SLEEP_MS = 10_000;

/** Calls `run` after `delayMs`, unless the function that it returns is called before. */
export type SetTimer = (delayMs: number, run: () => void) => () => void;

export interface Clock {
  readonly setTimer: SetTimer;
  /** Milliseconds since 1970. It may jump; durations are measured with timers. */
  readonly now: () => number;
  /** 0 <= n < 1 */
  readonly random: () => number;
}

export interface Heartbeat {
  /** A frame came. */
  heard(): void;
  stop(): void;
}

export function startHeartbeat(clock: Clock, { ping, dead }: { ping: () => void; dead: () => void }): Heartbeat {
  let silentMs = 0;
  let untilPingMs = nextPing(clock);
  let lookedAt = clock.now();
  let cancel = clock.setTimer(LOOK_EVERY_MS, look);
  function look(): void {
    cancel = clock.setTimer(LOOK_EVERY_MS, look);
    const hasSlept = clock.now() - lookedAt > LOOK_EVERY_MS + SLEPT_MS;
    lookedAt = clock.now();
    silentMs = hasSlept ? Math.max(silentMs, DEAD_AFTER_MS - AFTER_SLEEP_MS) : silentMs + LOOK_EVERY_MS;
    untilPingMs -= LOOK_EVERY_MS;
    if (silentMs >= DEAD_AFTER_MS) {
      cancel();
      dead();
    } else if (untilPingMs <= 0 || hasSlept) {
      untilPingMs = nextPing(clock);
      ping();
    }
  }
  return {
    heard: () => {
      silentMs = 0;
    },
    stop: () => cancel(),
  };
}

function nextPing({ random }: Clock): number {
  return PING_EVERY_MS - PING_SPREAD_MS + random() * 2 * PING_SPREAD_MS;
}
