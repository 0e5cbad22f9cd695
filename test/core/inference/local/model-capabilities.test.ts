import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { generatesText, modelCapabilities } from '../../../../core/inference/local/model-capabilities.ts';

const foundation = readFileSync(
  new URL('../../../../models/foundation/recipe/chat_template.jinja', import.meta.url),
  'utf8',
);

describe('a chat template shows', () => {
  test.each<[string, string, string[]]>([
    ['nothing but chat', "{% for m in messages %}{{ '<|user|>' + m.content }}{% endfor %}", []],
    ['tools', '{%- if tools %}{%- for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}', ['tools']],
    ['calls of tools', '{% if message.tool_calls %}[TOOL_CALLS]{% endif %}', ['tools']],
    ['a switch for thoughts', '{%- if enable_thinking is false %}{% endif %}', ['thinking']],
    ['thoughts in tags', "{{ '<think>\\n' }}", ['thinking']],
    ['thoughts of an earlier turn', '{{ message.reasoning_content }}', ['thinking']],
    ['thoughts in a channel', "{{ '<|channel|>analysis<|message|>' }}", ['thinking']],
    ['no tools, only a word like it', '{# stools and toolset #}', []],
  ])('%s', (_, chatTemplate, expected) => {
    expect(modelCapabilities({ isGenerative: true, chatTemplate })).toEqual(['completion', ...expected]);
  });

  test('what the built-in model can do', () => {
    expect(modelCapabilities({ isGenerative: true, chatTemplate: foundation })).toEqual(
      expect.arrayContaining(['completion', 'tools']),
    );
  });
});

test('a model without a template completes; one for embeddings does nothing else', () => {
  expect(modelCapabilities({ isGenerative: true })).toEqual(['completion']);
  expect(modelCapabilities({ isGenerative: false, chatTemplate: '{{ tools }}' })).toEqual(['embedding']);
});

test.each<[string, Record<string, unknown>, boolean]>([
  ['llama', {}, true],
  ['qwen3', { 'qwen3.pooling_type': 3 }, false],
  ['qwen3', { 'qwen3.pooling_type': 0 }, true],
  ['bert', {}, false],
  ['nomic-bert', { 'nomic-bert.attention.causal': false }, false],
  ['gemma3', { 'gemma3.attention.causal': false }, false],
])('%s with %j generates: %s', (architecture, metadata, expected) => {
  expect(generatesText(architecture, metadata)).toBe(expected);
});
