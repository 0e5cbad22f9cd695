/**
 * The approval queue as streams of events, for any number of readers up to a bound. Each starts with what waits at that
 * moment and misses nothing after it. One that does not keep up is cut off, since it can ask again and see what waits;
 * one that names the last event it read goes on from there, where all that came since is still known.
 */
import type { ApprovalQueue } from '../core/approvals/approval-queue.ts';
import type { EventHub, Subscription } from '../storage/event-hub.ts';
import { encodeApprovalEvent, encodeSnapshotEvent } from './wire/admin/approvals.ts';
import { withEventId } from './wire/event-stream.ts';

const BOUNDS = {
  /** A terminal that watches, a page or two; each holds a connection. */
  maxReaders: 16,
  /** More than all that may wait in the queue can say at once. The texts are shared, so it is about 2 MB for all. */
  maxUnread: 512,
  maxKept: 512,
} as const;

export interface ApprovalFeed {
  /** @returns undefined where as many read already as may */
  open(params: {
    /** Fires when the reader has gone. */
    readonly signal: AbortSignal;
    /** The id of the last event that it read before. */
    readonly lastEventId: string | undefined;
  }): ApprovalReader | undefined;
}

export interface ApprovalReader {
  /** Server-sent events, encoded. */
  readonly events: AsyncIterable<string>;
  /** Fires when the reader was too slow, and is to be cut off. */
  readonly cut: AbortSignal;
}

export function createApprovalFeed(
  queue: Pick<ApprovalQueue<never>, 'list' | 'subscribe'>,
  hub: EventHub,
): ApprovalFeed {
  const topic = hub.topic<string>(BOUNDS);
  queue.subscribe((event) => topic.publish(encodeApprovalEvent(event)));
  return {
    open({ signal, lastEventId }) {
      const subscription = topic.subscribe({ signal, after: lastEventId });
      if (subscription === undefined) return undefined;
      const first = subscription.isResumed ? undefined : encodeSnapshotEvent(queue.list());
      return { events: eventsOf(subscription, first), cut: subscription.cut };
    },
  };
}

async function* eventsOf({ batches, leave }: Subscription<string>, first: string | undefined): AsyncGenerator<string> {
  try {
    if (first !== undefined) yield first;
    for await (const batch of batches) yield batch.map(({ id, event }) => withEventId(id, event)).join('');
  } finally {
    leave();
  }
}
