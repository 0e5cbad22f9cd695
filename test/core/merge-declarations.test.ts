import { expect, test } from 'vitest';
import type { SettingsOf } from '../../core/config/setting.ts';
import type { modelSettings } from '../../core/inference/local/settings.ts';
import { mergeDeclarations } from '../../core/merge-declarations.ts';

test('the parts make one table, in their order', () => {
  const merged = mergeDeclarations({ b: 1, a: 2 }, { d: 'three' }, { c: 4 });
  expect(Object.entries(merged)).toEqual([
    ['b', 1],
    ['a', 2],
    ['d', 'three'],
    ['c', 4],
  ]);
  expect(merged.d.length + merged.c).toBe(9);
});

test('a name that two parts declare does not compile', () => {
  // @ts-expect-error: `a` is declared twice
  mergeDeclarations({ a: 1 }, { b: 2 }, { a: 3 });
});

test('a reader of the settings of one room sees no other room’s', () => {
  const read = (settings: SettingsOf<typeof modelSettings>): unknown => [
    settings['models.folder'],
    // @ts-expect-error: a setting of the gateway
    settings['server.port'],
  ];
  expect(read({ 'models.folder': '/models', 'models.discover': true, 'models.aliases': {} })).toEqual([
    '/models',
    undefined,
  ]);
});
