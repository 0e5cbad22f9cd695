/**
 * The approval queue as streams of events, for any number of readers up to a bound. Each starts with what waits at that
 * moment and misses nothing after it; one that does not keep up is cut off, since it can ask again and see what waits.
 */
import type { ApprovalQueue } from '../core/approvals/approval-queue.ts';
import { encodeApprovalEvent, encodeSnapshotEvent } from './wire/admin/approvals.ts';

/** A terminal that watches, a page or two; each holds a connection. */
const MAX_READERS = 16;

/** More than all that may wait in the queue can say at once. The texts are shared, so it is about 2 MB for all. */
const MAX_UNREAD_EVENTS = 512;

export interface ApprovalFeed {
  /**
   * @param signal fires when the reader has gone
   * @returns undefined where as many read already as may
   */
  open(signal: AbortSignal): ApprovalReader | undefined;
  /** Ends every stream, after what was said. */
  close(): void;
}

export interface ApprovalReader {
  /** Server-sent events, encoded. */
  readonly events: AsyncIterable<string>;
  /** Fires when the reader was too slow, and is to be cut off. */
  readonly cut: AbortSignal;
}

interface Reader extends ApprovalReader {
  readonly push: (text: string) => void;
  readonly end: () => void;
}

export function createApprovalFeed(queue: Pick<ApprovalQueue<never>, 'list' | 'subscribe'>): ApprovalFeed {
  const readers = new Set<Reader>();
  let isClosed = false;
  queue.subscribe((event) => {
    const text = encodeApprovalEvent(event);
    for (const reader of readers) reader.push(text);
  });
  return {
    open(signal) {
      if (readers.size >= MAX_READERS) return undefined;
      const reader = createReader(encodeSnapshotEvent(queue.list()), () => readers.delete(reader));
      readers.add(reader);
      signal.addEventListener('abort', reader.end, { once: true });
      if (isClosed || signal.aborted) reader.end();
      return reader;
    },
    close() {
      isClosed = true;
      for (const reader of readers) reader.end();
    },
  };
}

function createReader(first: string, onEnd: () => void): Reader {
  const tooSlow = new AbortController();
  let unread = [first];
  let isEnded = false;
  let more = Promise.withResolvers<void>();
  const end = (): void => {
    isEnded = true;
    more.resolve();
    onEnd();
  };
  async function* read(): AsyncGenerator<string> {
    try {
      for (;;) {
        while (unread.length > 0) yield unread.splice(0).join('');
        if (isEnded) return;
        more = Promise.withResolvers();
        await more.promise;
      }
    } finally {
      end();
    }
  }
  return {
    events: read(),
    cut: tooSlow.signal,
    end,
    push(text) {
      unread.push(text);
      more.resolve();
      if (unread.length <= MAX_UNREAD_EVENTS) return;
      unread = [];
      end();
      tooSlow.abort();
    },
  };
}
