import { expect, test } from 'vitest';
import { createOutbox } from '../../../../../core/inference/local/runner/outbox.ts';

function outboxHere() {
  const sent: (readonly number[])[] = [];
  const turns: (() => void)[] = [];
  const outbox = createOutbox<number>(
    (messages) => sent.push(messages),
    (run) => turns.push(run),
  );
  const nextTurn = (): void => {
    for (const run of turns.splice(0)) run();
  };
  return { outbox, sent, nextTurn };
}

test('what is posted in one turn goes out together, in its order', () => {
  const { outbox, sent, nextTurn } = outboxHere();
  for (const message of [1, 2, 3]) outbox.post(message);
  expect(sent).toEqual([]);
  nextTurn();
  outbox.post(4);
  nextTurn();
  expect(sent).toEqual([[1, 2, 3], [4]]);
});

test('what must not wait takes along what was posted before it, and nothing goes twice', () => {
  const { outbox, sent, nextTurn } = outboxHere();
  outbox.post(1);
  outbox.post(2);
  outbox.flush();
  outbox.post(3);
  nextTurn();
  outbox.flush();
  nextTurn();
  expect(sent).toEqual([[1, 2], [3]]);
});
