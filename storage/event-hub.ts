/**
 * Events for those who watch: topics, each with readers up to a bound. A reader that comes back names the last event it
 * read, and gets what it missed, as far as that is kept; one that does not keep up is cut off, since it can come back.
 * Nothing outlives the process, and no id of one run is known in the next.
 */

export interface TopicBounds {
  readonly maxReaders: number;
  /** Events that a reader may leave unread before it is cut off. */
  readonly maxUnread: number;
  /** Events that are kept for those who come back. */
  readonly maxKept: number;
}

export interface NumberedEvent<Event> {
  /** Of no other event, in any run. */
  readonly id: string;
  readonly event: Event;
}

export interface SubscribeParams<Event> {
  /** Fires when the reader has gone. */
  readonly signal: AbortSignal;
  /** The id of the last event that it read; `all` for everything that is kept. Undefined begins with what comes next. */
  readonly after?: string | undefined;
  /** Others it never sees. */
  readonly where?: (event: Event) => boolean;
}

export interface Subscription<Event> {
  /** In order; those that nobody has read yet come together. Ends with the topic, or when the reader has gone. */
  readonly batches: AsyncIterable<readonly NumberedEvent<Event>[]>;
  /** Fires when the reader was too slow, and is to be cut off. */
  readonly cut: AbortSignal;
  /** Nothing is missing since the event that it named. */
  readonly isResumed: boolean;
  /** For a reader that goes before it has begun to read; else the end of its reading is enough. */
  readonly leave: () => void;
}

export interface Topic<Event> {
  /** @param key that of an event before, which this one makes worthless: it is not kept, and who has not read it won't */
  publish(event: Event, key?: string): void;
  /** @returns undefined where as many read already as may */
  subscribe(params: SubscribeParams<Event>): Subscription<Event> | undefined;
}

export interface EventHub {
  topic<Event>(bounds: TopicBounds): Topic<Event>;
  /** Ends every reader, after what was said. */
  close(): void;
}

/** @param epoch a name that no other run has */
export function createEventHub(epoch: string): EventHub {
  const closing = new AbortController();
  let topics = 0;
  return {
    topic<Event>(bounds: TopicBounds): Topic<Event> {
      topics += 1;
      return createTopic<Event>({ name: `${epoch}-${topics}-`, bounds, closed: closing.signal });
    },
    close: () => closing.abort(),
  };
}

interface Entry<Event> extends NumberedEvent<Event> {
  readonly number: number;
  readonly key: string | undefined;
}

interface TopicOptions {
  /** What its ids begin with. */
  readonly name: string;
  readonly bounds: TopicBounds;
  readonly closed: AbortSignal;
}

function createTopic<Event>({ name, bounds, closed }: TopicOptions): Topic<Event> {
  const readers = new Set<Reader<Event>>();
  const kept: Entry<Event>[] = [];
  let lastNumber = 0;
  /** Of the newest event that was dropped to make room. */
  let droppedNumber = 0;

  /** @returns what it has not read, and undefined where some of that is gone */
  function since(after: string): readonly Entry<Event>[] | undefined {
    if (after === 'all') return kept;
    const digits = after.startsWith(name) ? after.slice(name.length) : '';
    const number = /^[1-9]\d{0,14}$/.test(digits) ? Number(digits) : -1;
    if (number < droppedNumber || number > lastNumber) return undefined;
    return kept.filter((entry) => entry.number > number);
  }

  return {
    publish(event, key) {
      lastNumber += 1;
      const entry = { number: lastNumber, id: `${name}${lastNumber}`, event, key };
      add(kept, entry);
      if (kept.length > bounds.maxKept) droppedNumber = kept.shift()?.number ?? droppedNumber;
      for (const reader of readers) reader.push(entry);
    },
    subscribe({ signal, after, where = () => true }) {
      if (readers.size >= bounds.maxReaders) return undefined;
      const missed = after === undefined ? undefined : since(after);
      const reader = createReader({
        unread: (missed ?? []).filter(({ event }) => where(event)),
        where,
        maxUnread: bounds.maxUnread,
        onEnd: () => readers.delete(reader),
      });
      readers.add(reader);
      const gone = AbortSignal.any([signal, closed]);
      gone.addEventListener('abort', reader.end, { once: true });
      if (gone.aborted) reader.end();
      return { batches: reader.batches, cut: reader.cut, isResumed: missed !== undefined, leave: reader.end };
    },
  };
}

/** At the end, and in place of the one with its key. */
function add<Event>(entries: Entry<Event>[], entry: Entry<Event>): void {
  const index = entry.key === undefined ? -1 : entries.findIndex(({ key }) => key === entry.key);
  if (index !== -1) entries.splice(index, 1);
  entries.push(entry);
}

interface Reader<Event> extends Pick<Subscription<Event>, 'batches' | 'cut'> {
  readonly push: (entry: Entry<Event>) => void;
  /** After what was said. */
  readonly end: () => void;
}

interface ReaderOptions<Event> {
  readonly unread: Entry<Event>[];
  readonly where: (event: Event) => boolean;
  readonly maxUnread: number;
  readonly onEnd: () => void;
}

function createReader<Event>({ where, maxUnread, onEnd, ...options }: ReaderOptions<Event>): Reader<Event> {
  const tooSlow = new AbortController();
  let { unread } = options;
  let isEnded = false;
  let more = Promise.withResolvers<void>();
  const end = (): void => {
    isEnded = true;
    more.resolve();
    onEnd();
  };
  async function* read(): AsyncGenerator<readonly NumberedEvent<Event>[]> {
    try {
      for (;;) {
        while (unread.length > 0) {
          const batch = unread;
          unread = [];
          yield batch;
        }
        if (isEnded) return;
        more = Promise.withResolvers();
        await more.promise;
      }
    } finally {
      end();
    }
  }
  return {
    batches: read(),
    cut: tooSlow.signal,
    end,
    push(entry) {
      if (!where(entry.event)) return;
      add(unread, entry);
      more.resolve();
      if (unread.length <= maxUnread) return;
      unread = [];
      end();
      tooSlow.abort();
    },
  };
}
