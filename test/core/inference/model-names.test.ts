import { describe, expect, test } from 'vitest';
import { findById, idFor, unknownModel } from '../../../core/inference/model-names.ts';

const installed = new Map(['foundation', 'Qwen3-8B', 'llama3:latest', 'llama3:8b'].map((id) => [id, { id }]));

describe('a model is found by its id', () => {
  test.each([
    ['foundation', 'foundation'],
    ['foundation:latest', 'foundation'],
    ['llama3', 'llama3:latest'],
    ['LLAMA3', 'llama3:latest'],
    ['llama3:8B', 'llama3:8b'],
    ['qwen3-8b', 'Qwen3-8B'],
    ['qwen3-8b:LATEST', 'Qwen3-8B'],
  ])('%s', (name, id) => {
    expect(findById(installed, name)?.id).toBe(id);
  });

  test('the one whose letters are the same goes before one whose are not', () => {
    const both = new Map(['A', 'a'].map((id) => [id, { id }]));
    expect([findById(both, 'a')?.id, findById(both, 'A')?.id]).toEqual(['a', 'A']);
  });

  test('a name that two of them could be meant by is none', () => {
    const both = new Map(['MINE', 'mine'].map((id) => [id, { id }]));
    expect(findById(both, 'Mine')).toBeUndefined();
    expect(unknownModel('Mine', undefined, both.values())).toContain("Did you mean 'MINE' or 'mine'?");
  });

  test.each(['', ':latest', 'foundatio', 'llama3:70b', 'constructor'])('%j is none', (name) => {
    expect(findById(installed, name)).toBeUndefined();
  });
});

describe('another name stands for a model', () => {
  const aliases = { 'claude-*': 'big', 'claude-*-haiku*': 'small', 'gpt-4o': 'big', '*turbo': 'fast', 'a*a*a': 'aaa' };
  test.each([
    ['claude-opus-4-5', 'big'],
    ['claude-', 'big'],
    ['Claude-3-5-Haiku-20241022', 'small'],
    ['gpt-4o', 'big'],
    ['GPT-4O:latest', 'big'],
    ['gpt-3.5-turbo', 'fast'],
    ['aaa', 'aaa'],
    ['a-a-a', 'aaa'],
    ['aa', undefined],
    ['gpt-4o-mini', undefined],
    ['claude', undefined],
    ['constructor', undefined],
  ])('%s', (name, id) => {
    expect(idFor(name, aliases)).toBe(id);
  });

  test('a name goes before every pattern, and the star alone after all', () => {
    const names = { '*': 'all', 'gpt-4o*': 'pattern', 'gpt-4o': 'name' };
    expect(['gpt-4o', 'gpt-4o-mini', 'o1'].map((name) => idFor(name, names))).toEqual(['name', 'pattern', 'all']);
  });
});

describe('a name that is none', () => {
  const models = [...installed.values()];
  test.each([
    ['fundation', "Did you mean 'foundation'?"],
    ['qwen3', "Did you mean 'Qwen3-8B'?"],
    ['llama3.1', "Did you mean 'llama3' or 'llama3:8b'?"],
    ['gpt-4o', 'postern models alias gpt-4o foundation'],
  ])('%s: %s', (name, words) => {
    expect(unknownModel(name, undefined, models)).toContain(words);
  });

  test('is put into no command where a shell would read it as one, and is cut', () => {
    const words = unknownModel(`$(reboot)${'x'.repeat(10_000)}`, undefined, models);
    expect(words).not.toContain('postern models alias');
    expect(words.length).toBeLessThan(400);
  });

  test('the model that it stands for is named', () => {
    expect(unknownModel('gpt-4o', 'gone', models)).toContain("stands for 'gone' here, which is not installed");
  });
});
