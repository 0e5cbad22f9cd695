import { expect, test } from 'vitest';
import { stagger } from '../../../clients/sdk/stagger.ts';
import { createFakeTime } from '../../core/fake-time.ts';

/** Attempts whose ends the test decides about. */
function held(count: number) {
  const time = createFakeTime();
  const begun: { readonly signal: AbortSignal; succeed(): void; fail(): void }[] = [];
  const stop = new AbortController();
  const attempts = Array.from({ length: count }, (_, at) => (signal: AbortSignal) => {
    return new Promise<{ success: number } | { failure: number }>((resolve) => {
      begun.push({ signal, succeed: () => resolve({ success: at }), fail: () => resolve({ failure: at }) });
    });
  });
  const outcome = stagger(attempts, { setTimer: time.setTimer, signal: stop.signal });
  return { time, begun, stop, outcome };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test('the next begins after a failure at once, after silence later, and the first to succeed ends the others', async () => {
  const { time, begun, outcome } = held(4);
  begun[0]!.fail();
  await turn();
  expect(begun).toHaveLength(2);
  time.advance(300);
  expect(begun).toHaveLength(3);
  // It has its successor already.
  begun[1]!.fail();
  await turn();
  expect(begun).toHaveLength(3);
  begun[2]!.succeed();
  expect(await outcome).toEqual({ success: 2 });
  expect([begun.map(({ signal }) => signal.aborted), time.pending()]).toEqual([[true, true, true], 0]);
  expect(begun).toHaveLength(3);
});

test('of those that succeed in one turn the preferred one counts', async () => {
  const { time, begun, outcome } = held(3);
  time.advance(300);
  time.advance(300);
  for (const at of [2, 0, 1]) begun[at]!.succeed();
  await turn();
  time.advance(0);
  expect(await outcome).toEqual({ success: 0 });
});

test('all failures are told, and an abort ends everything', async () => {
  const failing = held(2);
  failing.begun[0]!.fail();
  await turn();
  failing.begun[1]!.fail();
  expect(await failing.outcome).toEqual({ failures: [0, 1] });
  expect(await held(0).outcome).toEqual({ failures: [] });
  const aborted = held(2);
  aborted.stop.abort(new Error('enough'));
  await expect(aborted.outcome).rejects.toThrow('enough');
  expect([aborted.begun[0]!.signal.aborted, aborted.time.pending()]).toEqual([true, 0]);
});
