import { expect, test } from 'vitest';
import type { ModelStreamPart } from '../../../../../core/inference/model-port.ts';
import { ResponseParts } from '../../../../../core/inference/local/runner/response-parts.ts';

function record(act: (parts: ResponseParts) => void): string[] {
  const seen: string[] = [];
  const parts = new ResponseParts((part: ModelStreamPart) => {
    const said = 'delta' in part ? JSON.stringify(part.delta) : part.type === 'tool-call' ? part.input : '';
    seen.push(`${part.type} ${said}`.trim());
  });
  act(parts);
  parts.end();
  return seen;
}

test('text streams as it is, white space at its start and end included', () => {
  const seen = record((parts) => {
    for (const text of [' ', '\n', 'one', ' ', 'two', '\n']) parts.write('text', text);
  });
  expect(seen).toEqual([
    'text-start',
    'text-delta " \\none"',
    'text-delta " "',
    'text-delta "two"',
    'text-delta "\\n"',
    'text-end',
  ]);
});

test('an answer of nothing but white space is still an answer; none at all is none', () => {
  expect(record((parts) => parts.write('text', '\n'))).toEqual(['text-start', 'text-delta "\\n"', 'text-end']);
  expect(record(() => undefined)).toEqual([]);
});

test('the blank lines between thoughts and answer belong to neither', () => {
  const seen = record((parts) => {
    parts.write('reasoning', 'hm', 1);
    parts.write('text', '\n\n');
    parts.write('text', 'Yes');
  });
  expect(seen).toEqual([
    'reasoning-start',
    'reasoning-delta "hm"',
    'reasoning-end',
    'text-start',
    'text-delta "Yes"',
    'text-end',
  ]);
});

test('a call streams its arguments without the blank lines that end it, and drops white space before it', () => {
  const seen = record((parts) => {
    parts.write('text', '\n');
    for (const chunk of ['{"a":', ' 1', '}', '\n', '\n\n']) parts.writeCall('look', chunk);
    parts.endCall('look');
    parts.endCall('now');
  });
  expect(seen).toEqual([
    'tool-input-start',
    'tool-input-delta "{\\"a\\":"',
    'tool-input-delta " 1"',
    'tool-input-delta "}"',
    'tool-input-end',
    'tool-call {"a": 1}',
    'tool-input-start',
    'tool-input-delta "{}"',
    'tool-input-end',
    'tool-call {}',
  ]);
});
