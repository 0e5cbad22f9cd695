/** The engine looks for each stop at each token: of long ones it would hold the model, and gigabytes, for minutes. */
import { expect, test } from 'vitest';
import { atOnce } from '../../../core/steps.ts';
import { parseMessagesRequest } from '../../../gateway/wire/anthropic/request.ts';
import { parseChatRequest as parseOllamaChat, parseGenerateRequest } from '../../../gateway/wire/ollama/request.ts';
import { parseChatRequest } from '../../../gateway/wire/openai/chat-request.ts';
import { parseCompletionRequest } from '../../../gateway/wire/openai/completions-request.ts';

const messages = [{ role: 'user', content: 'Hello' }];

/** What each style calls it, and who parses that. */
const STYLES: Readonly<Record<string, (stop: unknown) => object>> = {
  'OpenAI chat': (stop) => atOnce(parseChatRequest({ model: 'm', messages, stop })),
  'OpenAI completions': (stop) => parseCompletionRequest({ model: 'm', prompt: 'Hello', stop }),
  'Anthropic messages': (stop) =>
    atOnce(parseMessagesRequest({ model: 'm', messages, max_tokens: 1, stop_sequences: [stop].flat() })),
  'Ollama chat': (stop) => atOnce(parseOllamaChat({ model: 'm', messages, options: { stop } })),
  'Ollama generate': (stop) => atOnce(parseGenerateRequest({ model: 'm', prompt: 'Hello', options: { stop } })),
};

test.each(Object.entries(STYLES))('%s takes 16 stops of 1,024 characters, and no more', (_style, parse) => {
  const longest = 's'.repeat(1024);
  for (const stop of ['###', longest, Array.from({ length: 16 }, () => longest)]) {
    expect(() => parse(stop)).not.toThrow();
  }
  for (const stop of [`${longest}s`, [`${longest}s`], Array.from({ length: 17 }, () => 's')]) {
    expect(() => parse(stop)).toThrow(expect.objectContaining({ code: 'bad_request' }));
  }
});

test.each(Object.entries(STYLES))('%s: one of no length, which forms send for none, is none', (_style, parse) => {
  for (const stop of ['', ['']]) expect(parse(stop)).not.toHaveProperty('call.stopSequences');
  expect(parse(['', '###'])).toHaveProperty('call.stopSequences', ['###']);
});
