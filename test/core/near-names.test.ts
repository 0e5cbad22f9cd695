import { expect, test } from 'vitest';
import { nearNames } from '../../core/near-names.ts';

const COMMANDS = [
  'serve',
  'status',
  'stop',
  'settings',
  'models',
  'keys',
  'devices',
  'pair',
  'invite',
  'relay',
  'logs',
];

test.each([
  ['sevre', ['serve']],
  ['stats', ['status']],
  ['set', ['settings']],
  ['MODEL', ['models']],
  ['key', ['keys']],
  ['device', ['devices']],
  ['log', ['logs']],
  ['frobnicate', []],
  ['', []],
  ['x', []],
])('%j may mean %j', (typed, meant) => {
  expect(nearNames(typed, COMMANDS)).toEqual(meant);
});

test('a name that nobody typed is compared with none', () => {
  expect(nearNames('serve'.repeat(1000), ['serve'.repeat(1000)])).toEqual([]);
});

test('no more than are wanted, the nearest first', () => {
  expect(nearNames('qwen3-8b', ['qwen3-4b', 'qwen3-8b-instruct', 'qwen2-9c', 'qwen3-0b'], 2)).toEqual([
    'qwen3-8b-instruct',
    'qwen3-4b',
  ]);
});
