import { describe, expect, test } from 'vitest';
import { createEventHub, type Subscription, type Topic, type TopicBounds } from '../../storage/event-hub.ts';

const BOUNDS: TopicBounds = { maxReaders: 3, maxUnread: 4, maxKept: 6 };
const newTopic = (bounds: Partial<TopicBounds> = {}): Topic<string> =>
  createEventHub('run').topic({ ...BOUNDS, ...bounds });
const stays = new AbortController().signal;

/** What can be read without waiting. */
async function unread(subscription: Subscription<string> | undefined): Promise<readonly [string, string][]> {
  const { value } = await subscription!.batches[Symbol.asyncIterator]().next();
  return ((value ?? []) as { id: string; event: string }[]).map(({ id, event }) => [id, event]);
}

const publish = (topic: Topic<string>, ...events: string[]): void => events.forEach((event) => topic.publish(event));

describe('a reader', () => {
  test('is told what comes after it began, in order', async () => {
    const topic = newTopic();
    publish(topic, 'before');
    const reader = topic.subscribe({ signal: stays });
    expect(reader?.isResumed).toBe(false);
    publish(topic, 'a', 'b');
    expect(await unread(reader)).toEqual([
      ['run-1-2', 'a'],
      ['run-1-3', 'b'],
    ]);
  });

  test('that comes back goes on after the last event it read', async () => {
    const topic = newTopic();
    publish(topic, 'a', 'b', 'c');
    const reader = topic.subscribe({ signal: stays, after: 'run-1-1' });
    publish(topic, 'd');
    expect(reader?.isResumed).toBe(true);
    expect((await unread(reader)).map(([, event]) => event)).toEqual(['b', 'c', 'd']);
    expect(topic.subscribe({ signal: stays, after: 'run-1-4' })?.isResumed).toBe(true);
  });

  test.each(['', 'run-1-0', 'run-1-99', 'run-1--1', 'run-1-1e0', 'run-1-0x1', 'run-2-1', 'other-1-1', 'run-1-2 '])(
    'that names an event which never was (%j) is not told that it missed none',
    (after) => {
      const topic = newTopic();
      publish(topic, 'a', 'b');
      expect(topic.subscribe({ signal: stays, after })?.isResumed).toBe(false);
    },
  );

  test('is not told that it missed nothing where some of it is kept no more', () => {
    const topic = newTopic();
    publish(topic, ...Array.from('abcdefgh'));
    expect(topic.subscribe({ signal: stays, after: 'run-1-1' })?.isResumed).toBe(false);
    expect(topic.subscribe({ signal: stays, after: 'run-1-2' })?.isResumed).toBe(true);
  });

  test('of everything that is kept gets that', async () => {
    const topic = newTopic({ maxUnread: 9 });
    publish(topic, ...Array.from('abcdefgh'));
    expect((await unread(topic.subscribe({ signal: stays, after: 'all' }))).map(([, event]) => event)).toEqual([
      ...Array.from('cdefgh'),
    ]);
  });

  test('sees what it asked for, and no more', async () => {
    const topic = newTopic();
    publish(topic, 'a1', 'b1');
    const reader = topic.subscribe({ signal: stays, after: 'all', where: (event) => event.startsWith('a') });
    publish(topic, 'b2', 'a2');
    expect((await unread(reader)).map(([, event]) => event)).toEqual(['a1', 'a2']);
  });

  test('that leaves too much unread is cut off, and no other is', async () => {
    const topic = newTopic();
    const slow = topic.subscribe({ signal: stays });
    publish(topic, ...Array.from('abcd'));
    const other = topic.subscribe({ signal: stays });
    expect(slow?.cut.aborted).toBe(false);
    publish(topic, 'e');
    expect([slow?.cut.aborted, other?.cut.aborted]).toEqual([true, false]);
    expect(await unread(slow)).toEqual([]);
    expect((await unread(other)).map(([, event]) => event)).toEqual(['e']);
  });

  test('of what is made worthless by the next need not keep up', async () => {
    const topic = newTopic();
    const reader = topic.subscribe({ signal: stays });
    topic.publish('begun');
    for (let percent = 1; percent <= 100; percent += 1) topic.publish(`${percent} %`, 'progress');
    expect(reader?.cut.aborted).toBe(false);
    expect(await unread(reader)).toEqual([
      ['run-1-1', 'begun'],
      ['run-1-101', '100 %'],
    ]);
    expect(topic.subscribe({ signal: stays, after: 'run-1-1' })?.isResumed).toBe(true);
  });
});

describe('readers', () => {
  test('are as many as may; who leaves makes room', () => {
    const topic = newTopic();
    const leaving = new AbortController();
    topic.subscribe({ signal: leaving.signal });
    topic.subscribe({ signal: stays });
    topic.subscribe({ signal: stays });
    expect(topic.subscribe({ signal: stays })).toBeUndefined();
    leaving.abort();
    expect(topic.subscribe({ signal: stays })).toBeDefined();
  });

  test('who are gone before they begin take no place', async () => {
    const topic = newTopic();
    for (let turn = 0; turn < 10; turn += 1) {
      expect(await unread(topic.subscribe({ signal: AbortSignal.abort() }))).toEqual([]);
    }
  });

  test('read to the end when the hub closes, and nothing after it', async () => {
    const hub = createEventHub('run');
    const topic = hub.topic<string>(BOUNDS);
    const reader = topic.subscribe({ signal: stays });
    topic.publish('last');
    hub.close();
    topic.publish('late');
    const read: string[] = [];
    for await (const batch of reader!.batches) read.push(...batch.map(({ event }) => event));
    expect(read).toEqual(['last']);
  });
});
