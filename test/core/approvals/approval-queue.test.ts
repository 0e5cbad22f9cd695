import { getEventListeners } from 'node:events';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  createApprovalQueue,
  type ApprovalEvent,
  type ApprovalQueue,
  type ApprovalParams,
} from '../../../core/approvals/approval-queue.ts';
import { approvalKinds } from '../../../service/approvals.ts';
import { createFakeTime, type FakeTime } from '../fake-time.ts';

let time: FakeTime;
type ApprovalKind = keyof typeof approvalKinds;
let queue: ApprovalQueue<ApprovalKind>;
let recorded: string[];
let errors: unknown[];
let disk: { isFull: boolean };

beforeEach(() => {
  time = createFakeTime();
  recorded = [];
  errors = [];
  disk = { isFull: false };
  let ids = 0;
  queue = createApprovalQueue({
    kinds: approvalKinds,
    now: time.now,
    setTimer: time.setTimer,
    newId: () => `id${++ids}`,
    record: ({ id }, outcome) => {
      if (disk.isFull) throw new Error('full');
      recorded.push(`${id} ${outcome}`);
    },
    onError: (error) => void errors.push(error),
  });
});

const ask = (params: Partial<ApprovalParams<ApprovalKind>> = {}) =>
  queue.request({ kind: 'tool_permission', summary: 'run "ls"', lifetimeMs: 60_000, ...params })!;

describe('an approval', () => {
  test('is shown with all that its owner needs, and approved', async () => {
    const { approval, outcome } = ask();
    expect(queue.list()).toEqual([approval]);
    expect(approval).toEqual({
      id: 'id1',
      kind: 'tool_permission',
      summary: 'run "ls"',
      createdAt: time.now(),
      expiresAt: time.now() + 60_000,
    });
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'done' });
    expect(await outcome).toBe('approved');
    expect(queue.list()).toEqual([]);
    expect(time.pending()).toBe(0);
    expect(recorded).toEqual(['id1 approved']);
  });

  test('is denied', async () => {
    const { outcome } = ask();
    expect(queue.decide('id1', 'denied')).toEqual({ result: 'done' });
    expect(await outcome).toBe('denied');
  });

  test('is decided once: the second decision hears what the first was', async () => {
    const { outcome } = ask();
    queue.decide('id1', 'denied');
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'settled', outcome: 'denied' });
    expect(await outcome).toBe('denied');
    expect(queue.decide('anonymous', 'approved')).toEqual({ result: 'unknown' });
    expect(recorded).toEqual(['id1 denied']);
  });

  test('expires as a no, to the millisecond', async () => {
    const { outcome } = ask();
    time.advance(59_999);
    expect(queue.list()).toHaveLength(1);
    time.advance(1);
    expect(await outcome).toBe('expired');
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'settled', outcome: 'expired' });
    expect(recorded).toEqual(['id1 expired']);
  });

  test('expires as a no though its timer is late', async () => {
    const { outcome } = ask();
    time.sleep(60_000);
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'settled', outcome: 'expired' });
    expect(await outcome).toBe('expired');
  });

  test('is cancelled when whoever asked has gone, before or after', async () => {
    const leaving = new AbortController();
    const { outcome } = ask({ signal: leaving.signal });
    leaving.abort();
    expect(await outcome).toBe('cancelled');
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'settled', outcome: 'cancelled' });
    expect(await ask({ signal: leaving.signal }).outcome).toBe('cancelled');
    expect(queue.list()).toEqual([]);
    expect(time.pending()).toBe(0);
  });

  test('that was decided takes no notice of who leaves later', async () => {
    const leaving = new AbortController();
    const { outcome } = ask({ signal: leaving.signal });
    queue.decide('id1', 'approved');
    leaving.abort();
    expect(await outcome).toBe('approved');
    expect(recorded).toEqual(['id1 approved']);
  });

  test('lets go of the signal of a caller that stays', () => {
    const { signal } = new AbortController();
    ask({ signal });
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    queue.decide('id1', 'denied');
    expect(getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test.each([0, -1, Number.NaN, Infinity, 86_400_001])('waits a bounded time: not %d ms', (lifetimeMs) => {
    expect(() => ask({ lifetimeMs })).toThrow(RangeError);
    expect(queue.list()).toEqual([]);
    expect(time.pending()).toBe(0);
  });

  test('says nothing to a terminal but its words', () => {
    const { approval } = ask({ summary: `\u001b[2Jpair \u202ephone\n${'x'.repeat(5000)}` });
    expect(approval.summary).toMatch(/^\ufffd\[2Jpair \ufffdphone\ufffdx+…$/);
    expect(approval.summary).toHaveLength(1000);
  });
});

describe('a code', () => {
  test('approves on the device and not here', async () => {
    const pairing = ask({ kind: 'pairing', code: '123456' });
    expect(pairing.approval.code).toBe('123456');
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'needs_code' });
    expect(queue.list()).toHaveLength(1);
    expect(pairing.confirmCode()).toBe('approved');
    expect(await pairing.outcome).toBe('approved');
  });

  test('comes too late after a no', async () => {
    const pairing = ask({ kind: 'pairing', code: '123456' });
    expect(queue.decide('id1', 'denied')).toEqual({ result: 'done' });
    expect(pairing.confirmCode()).toBe('denied');
    expect(await pairing.outcome).toBe('denied');
    const second = ask({ kind: 'pairing', code: '123456' });
    time.sleep(60_000);
    expect(second.confirmCode()).toBe('expired');
  });
});

describe('how many', () => {
  test.each([
    ['pairings with an invite', 16, {}],
    ['pairings by a code', 3, { code: '123456' }],
  ])('%s wait at once: %i; others are not kept from asking', (_name, limit, params) => {
    const kind: ApprovalKind = 'pairing';
    for (let turn = 0; turn < limit; turn += 1) ask({ kind, ...params });
    expect(queue.request({ kind, summary: 'one more', lifetimeMs: 1000, ...params })).toBeUndefined();
    expect(ask({ kind: 'spend' })).toBeDefined();
    expect(ask({ kind, ...('code' in params ? {} : { code: '123456' }) })).toBeDefined();
    queue.decide('id1', 'denied');
    expect(ask({ kind, ...params })).toBeDefined();
    expect(queue.list()).toHaveLength(limit + 2);
  });

  test('a code is given out for kinds that declare it, and for no others', () => {
    const params = { kind: 'spend', summary: 'a dollar', lifetimeMs: 1000 } as const;
    expect(queue.request({ ...params, code: '123456' })).toBeUndefined();
    expect(queue.request(params)).toBeDefined();
    // @ts-expect-error: nobody declares this kind
    expect(() => queue.request({ ...params, kind: 'visit' })).toThrow(TypeError);
  });

  test('outcomes are remembered: the newest 256', () => {
    for (let turn = 0; turn < 300; turn += 1) {
      const { approval } = ask();
      queue.decide(approval.id, 'denied');
    }
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'unknown' });
    expect(queue.decide('id300', 'approved')).toEqual({ result: 'settled', outcome: 'denied' });
  });
});

test('who listens hears of all that comes and goes, until they leave', () => {
  const heard: string[] = [];
  const leave = queue.subscribe((event: ApprovalEvent) =>
    heard.push(`${event.type} ${event.approval.id}${event.type === 'settled' ? ` ${event.outcome}` : ''}`),
  );
  ask();
  ask();
  queue.decide('id2', 'approved');
  time.advance(60_000);
  expect(heard).toEqual(['added id1', 'added id2', 'settled id2 approved', 'settled id1 expired']);
  leave();
  ask();
  expect(heard).toHaveLength(4);
});

describe('where the audit log cannot be written', () => {
  test('a yes is not given, and may be given later', async () => {
    const { outcome } = ask();
    disk.isFull = true;
    expect(() => queue.decide('id1', 'approved')).toThrow('full');
    expect(queue.list()).toHaveLength(1);
    disk.isFull = false;
    expect(queue.decide('id1', 'approved')).toEqual({ result: 'done' });
    expect(await outcome).toBe('approved');
  });

  test('a no is a no', async () => {
    disk.isFull = true;
    const { outcome } = ask();
    expect(queue.decide('id1', 'denied')).toEqual({ result: 'done' });
    expect(await outcome).toBe('denied');
    ask();
    time.advance(60_000);
    expect(queue.list()).toEqual([]);
    expect(errors).toHaveLength(2);
  });
});

test('the end of the service cancels all that waits, and all that still comes', async () => {
  const waiting = [ask(), ask({ kind: 'pairing', code: '1' })];
  queue.close();
  expect(await Promise.all(waiting.map(({ outcome }) => outcome))).toEqual(['cancelled', 'cancelled']);
  expect(await ask().outcome).toBe('cancelled');
  expect(time.pending()).toBe(0);
});
