/** Lists that a caller makes as long as it likes are read item by item, in every style. */
import { describe, expect, test } from 'vitest';
import { atOnce, type Steps } from '../../core/steps.ts';
import { RequestError } from '../../gateway/errors.ts';
import { MAX_ITEM_NODES, parseItems } from '../../gateway/json-items.ts';
import { parseCountTokensRequest, parseMessagesRequest } from '../../gateway/wire/anthropic/request.ts';
import { parseChatRequest as parseOllamaChat } from '../../gateway/wire/ollama/request.ts';
import { parseChatRequest } from '../../gateway/wire/openai/chat-request.ts';
import { parseResponsesBody } from '../../gateway/wire/responses/request.ts';
import * as z from 'zod';

const COUNT = 1000;
const message = { role: 'user', content: 'hi' };
const common = { model: 'm', max_tokens: 1 };

/** A list of a thousand, the last of which is wrong. */
function lastWrong(item: object): unknown[] {
  return Array.from({ length: COUNT }, (_, at) => (at === COUNT - 1 ? 0 : item));
}

interface Style {
  readonly name: string;
  readonly parse: (json: unknown) => Steps<unknown>;
  readonly input: string;
  readonly tool: object;
}

const openAiTool = { type: 'function', function: { name: 't' } };
const styles: readonly Style[] = [
  { name: 'OpenAI chat', parse: parseChatRequest, input: 'messages', tool: openAiTool },
  { name: 'Anthropic', parse: parseMessagesRequest, input: 'messages', tool: { name: 't', input_schema: {} } },
  {
    name: 'Anthropic, counted',
    parse: parseCountTokensRequest,
    input: 'messages',
    tool: { name: 't', input_schema: {} },
  },
  { name: 'Ollama', parse: parseOllamaChat, input: 'messages', tool: openAiTool },
  { name: 'Open Responses', parse: parseResponsesBody, input: 'input', tool: { type: 'function', name: 't' } },
];

/** @returns in which step it was found, and what was said */
function findFault(steps: Steps<unknown>): { readonly step: number; readonly message: string } {
  for (let step = 1; ; step += 1) {
    try {
      if (steps.next().done === true) return { step, message: '' };
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      return { step, message: error.message };
    }
  }
}

describe.each(styles)('$name', ({ parse, input, tool }) => {
  test('reads a conversation message by message', () => {
    const { step, message: words } = findFault(parse({ ...common, [input]: lastWrong(message) }));
    expect(words).toContain(`${input}[${COUNT - 1}]`);
    expect(step).toBeGreaterThan(COUNT);
  });

  test('reads tools one by one', () => {
    const { step, message: words } = findFault(parse({ ...common, [input]: [message], tools: lastWrong(tool) }));
    expect(words).toContain(`tools[${COUNT - 1}]`);
    expect(step).toBeGreaterThan(COUNT);
  });
});

describe('an item', () => {
  const parse = (item: unknown) => atOnce(parseItems(z.unknown(), ['', item], 'messages'));

  test('of as many values and keys as may be is read', () => {
    // The array itself is one.
    const item = Array.from({ length: MAX_ITEM_NODES - 1 }, () => 0);
    expect(parse(item)).toEqual(['', item]);
  });

  test.each([
    ['values', Array.from({ length: MAX_ITEM_NODES }, () => 0)],
    ['keys and values', Object.fromEntries(Array.from({ length: MAX_ITEM_NODES / 2 }, (_, at) => [`k${at}`, 0]))],
    ['values within values', Array.from({ length: 250 }, () => Array.from({ length: 200 }, () => 0))],
  ])('of one more is refused, and named: %s', (_, item) => {
    expect(() => parse(item)).toThrow('messages[1] has more than 50,000 values and keys.');
  });
});
