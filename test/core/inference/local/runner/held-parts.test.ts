import { expect, test } from 'vitest';
import type { ModelStreamPart } from '../../../../../core/inference/model-port.ts';
import { holdParts } from '../../../../../core/inference/local/runner/held-parts.ts';

const delta = (text: string, id = '0'): ModelStreamPart => ({ type: 'text-delta', id, delta: text });
const thought = (text: string): ModelStreamPart => ({ type: 'reasoning-delta', id: '0', delta: text });
const start: ModelStreamPart = { type: 'stream-start', warnings: [] };

function heldHere() {
  const posted: ModelStreamPart[] = [];
  return { posted, ...holdParts((part) => posted.push(part)) };
}

test('what comes before the first piece waits for it, and what comes after it for the end', () => {
  const { posted, emit, end } = heldHere();
  emit(start);
  emit({ type: 'text-start', id: '0' });
  expect(posted).toEqual([]);
  emit(delta('The'));
  expect(posted).toEqual([start, { type: 'text-start', id: '0' }, delta('The')]);
  emit(delta(' capital'));
  emit({ type: 'text-end', id: '0' });
  expect(posted).toHaveLength(3);
  end();
  expect(posted.slice(3)).toEqual([delta(' capital'), { type: 'text-end', id: '0' }]);
  end();
  expect(posted).toHaveLength(5);
});

test('the fragments of one block are put together, and of no two', () => {
  const { posted, emit, end } = heldHere();
  for (const part of [delta('a'), delta('b'), delta('c'), thought('d'), thought('e'), delta('f'), delta('g', '1')]) {
    emit(part);
  }
  end();
  expect(posted).toEqual([delta('a'), delta('bc'), thought('de'), delta('f'), delta('g', '1')]);
});

test.each<ModelStreamPart>([
  thought('x'),
  { type: 'tool-input-start', id: 't', toolName: 'look' },
  { type: 'tool-call', toolCallId: 't', toolName: 'look', input: '{}' },
])('a piece is whatever the model writes: $type', (piece) => {
  const { posted, emit } = heldHere();
  emit(start);
  emit(piece);
  expect(posted).toEqual([start, piece]);
});

test('an answer without a piece comes with its end', () => {
  const { posted, emit, end } = heldHere();
  emit(start);
  expect(posted).toEqual([]);
  end();
  expect(posted).toEqual([start]);
});
