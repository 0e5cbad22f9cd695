import { expect, test } from 'vitest';
import type { Terminal } from '../../cli/command.ts';
import { formatBytes } from '../../cli/format-bytes.ts';
import { startProgress } from '../../cli/progress.ts';
import { silentTerminal } from '../support/silent-terminal.ts';

function screen(isScreen: boolean): { readonly terminal: Terminal; readonly seen: string[] } {
  const seen: string[] = [];
  const say = (text: string): void => void seen.push(text);
  return { terminal: { ...silentTerminal, print: say, say, rewrite: isScreen ? say : undefined }, seen };
}

test('a line for every tenth, none for those that were there already', () => {
  const { terminal, seen } = screen(false);
  const progress = startProgress({ terminal, totalBytes: 1000, doneBytes: 350, now: () => 0 });
  for (let bytes = 350; bytes <= 1000; bytes += 10) progress.update(bytes);
  progress.end();
  expect(seen).toEqual(['40', '50', '60', '70', '80', '90', '100'].map((n) => expect.stringMatching(`^${n} %`)));
  expect(seen[0]).toBe('40 %, 400 B of 1 kB');
});

test('on a screen a bar with rate and time, no oftener than one can read', () => {
  const { terminal, seen } = screen(true);
  let atMs = 0;
  const progress = startProgress({ terminal, totalBytes: 100e6, doneBytes: 0, now: () => atMs });
  for (let bytes = 0; bytes <= 100e6; bytes += 1e6) {
    progress.update(bytes);
    atMs += 100;
  }
  expect(seen.length).toBeLessThanOrEqual(52);
  expect(seen[1]).toBe('[........................] 2 %  2.0 MB of 100 MB  10 MB/s  0:10 left');
  expect(seen.at(-1)).toBe('[########################] 100 %  100 MB of 100 MB  10 MB/s  0:00 left');
  progress.end();
  expect(seen.at(-1)).toBe('');
});

test('the rate is that of the last moments', () => {
  const { terminal, seen } = screen(true);
  let atMs = 0;
  const progress = startProgress({ terminal, totalBytes: 1e9, doneBytes: 0, now: () => atMs });
  for (const bytes of [0, 500e6, 500e6 + 1e6]) {
    progress.update(bytes);
    atMs += 1000;
  }
  for (let more = 2; more < 8; more += 1) {
    progress.update(500e6 + more * 1e6);
    atMs += 1000;
  }
  expect(seen.at(-1)).toContain('1.0 MB/s  8:13 left');
});

test.each([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1 kB'],
  [512_400, '512 kB'],
  [999_999, '1.0 MB'],
  [4_700_000, '4.7 MB'],
  [47_000_000, '47 MB'],
  [4_920_734_272, '4.9 GB'],
  [47_000_000_000, '47.0 GB'],
  [5e12, '5.0 TB'],
  [5e16, '50000.0 TB'],
])('%i bytes are %s', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text);
});
