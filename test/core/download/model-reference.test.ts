import { expect, test } from 'vitest';
import { parseModelReference } from '../../../core/download/model-reference.ts';

const HUB = 'https://huggingface.co';

test.each<[string, object]>([
  ['hf:Qwen/Qwen3-8B-GGUF', { kind: 'hub', repository: 'Qwen/Qwen3-8B-GGUF' }],
  ['hf:a/b:Q4_K_M', { kind: 'hub', repository: 'a/b', wanted: 'Q4_K_M' }],
  ['hf:a/b:sub/file.gguf', { kind: 'hub', repository: 'a/b', wanted: 'sub/file.gguf' }],
  [`${HUB}/a/b`, { kind: 'hub', repository: 'a/b' }],
  [`${HUB}/a/b/tree/main`, { kind: 'hub', repository: 'a/b' }],
  [`${HUB}/a/b/blob/main/x%20y.gguf`, { kind: 'hub', repository: 'a/b', wanted: 'x y.gguf' }],
  [`${HUB}/a/b/resolve/main/sub/x.gguf?download=true`, { kind: 'hub', repository: 'a/b', wanted: 'sub/x.gguf' }],
  ['https://example.com/m/x.gguf', { kind: 'url', url: new URL('https://example.com/m/x.gguf') }],
  ['http://localhost:8000/x.gguf', { kind: 'url', url: new URL('http://localhost:8000/x.gguf') }],
])('%s', (text, expected) => {
  expect(parseModelReference(text, HUB)).toEqual(expected);
});

test.each([
  '',
  'Qwen/Qwen3',
  'foundation',
  'hf:',
  'hf:org',
  'hf:org/',
  'hf:../..',
  'hf:org/a..b',
  'hf:org/repo/file.gguf',
  'hf:org/re po',
  'hf:org/repo?x=1',
  'hf:org/repo#x',
  'hf:org/%2e%2e',
  'ftp://example.com/x.gguf',
  'file:///x.gguf',
  'http://example.com/x.gguf',
  'https://user:word@example.com/x.gguf',
  'https://example.com/x.bin',
  'https://example.com/',
])('%j is refused, with what to say instead', (text) => {
  expect(() => parseModelReference(text, HUB)).toThrow(expect.objectContaining({ code: 'bad_reference' }));
});
