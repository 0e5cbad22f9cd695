/**
 * Counts callers that were turned away, and tells the audit log once a minute how many for each reason: a stranger who
 * knocks a thousand times a second must not be able to fill the disk.
 */
import type { SetTimer } from '../timer.ts';
import type { AuditEntryOf } from './audit-entry.ts';
import type { AuditLog } from './audit-log.ts';

/** How often callers were turned away for this reason, in about a minute. */
export const refusalAuditEvents = { refused: { reason: 'name', count: 'count' } } as const;

const SUM_MS = 60_000;

export interface RefusalTally {
  /** @param reason one of a fixed list, never anything that the caller said */
  note(reason: string): void;
  /** Tells the log what was counted so far; for the end of the service. @throws what the log throws */
  flush(): void;
}

interface TallyOptions {
  readonly log: AuditLog<AuditEntryOf<typeof refusalAuditEvents>>;
  readonly setTimer: SetTimer;
  /** When the log could not be written. Nothing is lost: the next minute tries again. */
  readonly onError: (error: unknown) => void;
}

export function createRefusalTally({ log, setTimer, onError }: TallyOptions): RefusalTally {
  const counts = new Map<string, number>();
  let cancel: (() => void) | undefined;
  const flush = (): void => {
    cancel?.();
    cancel = undefined;
    for (const [reason, count] of counts) {
      log.append({ kind: 'refused', reason, count });
      counts.delete(reason);
    }
  };
  const flushOrWait = (): void => {
    try {
      flush();
    } catch (error) {
      cancel = setTimer(SUM_MS, flushOrWait);
      onError(error);
    }
  };
  return {
    note(reason) {
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      cancel ??= setTimer(SUM_MS, flushOrWait);
    },
    flush,
  };
}
