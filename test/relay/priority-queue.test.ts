import fc from 'fast-check';
import { expect, test } from 'vitest';
import { PriorityQueue } from '../../relay/priority-queue.ts';
import { runs } from '../support/sampling.ts';

type Step = { readonly push: number } | { readonly demoteBy: number } | 'remove';

const steps: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ push: fc.nat(50) }),
  fc.record({ demoteBy: fc.nat(50) }),
  fc.constant('remove' as const),
);

test('whatever was queued, removed and demoted, the lowest is first', () => {
  fc.assert(
    fc.property(fc.array(steps, { maxLength: 60 }), (sequence) => {
      const queue = new PriorityQueue<{ rank: number }>(({ rank }) => rank);
      const items: { rank: number }[] = [];
      for (const step of sequence) {
        const { first } = queue;
        if (step === 'remove') {
          queue.removeFirst();
          if (first !== undefined) items.splice(items.indexOf(first), 1);
        } else if ('push' in step) {
          const item = { rank: step.push };
          queue.push(item);
          items.push(item);
        } else if (first !== undefined) {
          first.rank += step.demoteBy;
          queue.demoteFirst();
        }
        const lowest = items.length === 0 ? undefined : Math.min(...items.map(({ rank }) => rank));
        expect(queue.first?.rank).toBe(lowest);
      }
    }),
    runs(2000),
  );
});
