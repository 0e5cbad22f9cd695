/**
 * Why a model stopped, as each style's published schema has it. Providers know reasons for which no style has a word: one
 * without a name is told as the end of the answer, and one that is a failure is never told as an answer.
 */
import type { LanguageModelV4FinishReason } from '@ai-sdk/provider';
import type Anthropic from '@anthropic-ai/sdk';
import type OpenAI from 'openai';
import { describe, expect, test } from 'vitest';
import { collect, type LanguageModel, type ModelStreamPart } from '../../../../core/inference/model-port.ts';
import type { GatewayRequest, Reply, Route, Services } from '../../../../gateway/route.ts';
import { createMessage } from '../../../../gateway/routes/inference/anthropic-messages.ts';
import { chatCompletions } from '../../../../gateway/routes/inference/chat-completions.ts';
import type { ModelSource } from '../../../../gateway/routes/inference/chat-route.ts';
import { completions } from '../../../../gateway/routes/inference/completions.ts';
import { ollamaChat, ollamaGenerate } from '../../../../gateway/routes/inference/ollama-inference.ts';
import { createResponse } from '../../../../gateway/routes/responses/create.ts';
import { ollamaFaults } from '../../../support/ollama-schema.ts';
import { expectValidResponse } from '../../../support/openresponses.ts';
import { streamOf } from '../../../support/port-events.ts';

type Reason = LanguageModelV4FinishReason['unified'];

function modelThat(reason: Reason | undefined): LanguageModel {
  const parts: ModelStreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: 'Hi' },
    { type: 'text-end', id: '0' },
  ];
  const usage = {
    inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  if (reason !== undefined) parts.push({ type: 'finish', finishReason: { unified: reason, raw: undefined }, usage });
  return {
    specificationVersion: 'v4',
    provider: 'remote',
    modelId: 'm',
    supportedUrls: {},
    doStream: async () => ({ stream: streamOf(parts) }),
    doGenerate: async () => collect(streamOf(parts)),
  };
}

type Needs = ModelSource &
  Pick<Services, 'now' | 'catalog' | 'responses' | 'backgroundResponses' | 'storage'> & {
    readonly inference: Services['inference'];
  };

async function ask(route: Route<Needs>, body: object, reason: Reason | undefined): Promise<Reply> {
  const services = {
    inference: { languageModel: async () => modelThat(reason) },
    catalog: { resolve: async () => ({ id: 'm' }) },
    responses: { hasRoomInConversation: () => true },
    now: () => 1_700_000_000_000,
  } as unknown as Needs;
  const caller = { transport: 'loopback', sealed: false, credential: 'none', scope: 'owner' };
  const request = { json: () => body, signal: new AbortController().signal, caller, bodyBytes: 1 };
  return route.handle!(request as unknown as GatewayRequest, services);
}

async function textOf({ body }: Reply): Promise<string> {
  let text = '';
  for await (const piece of body as AsyncIterable<string>) text += piece;
  return text;
}

interface Style {
  readonly name: string;
  readonly route: Route<Needs>;
  readonly request: object;
  /** Where a whole answer says why it ended. */
  readonly reasonOf: (body: object) => unknown;
  readonly reasons: Readonly<Record<Exclude<Reason, 'error' | 'interrupted'>, unknown>>;
  /** What a stream says of it, whatever the reason. */
  readonly inStream: (reason: string) => string;
  /** What a failed stream ends with. */
  readonly failure: RegExp;
}

const messages = [{ role: 'user', content: 'Hello' }];
const at = (path: string) => (body: object) =>
  path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown>)[key], body);

type ChatReason = OpenAI.Chat.ChatCompletion.Choice['finish_reason'];
const OPENAI_CHAT = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  'content-filter': 'content_filter',
  other: 'stop',
} satisfies Record<string, ChatReason>;
type TextReason = OpenAI.Completion['choices'][number]['finish_reason'];
const OPENAI_TEXT = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'stop',
  'content-filter': 'content_filter',
  other: 'stop',
} satisfies Record<string, TextReason>;
const ANTHROPIC = {
  stop: 'end_turn',
  length: 'max_tokens',
  'tool-calls': 'tool_use',
  'content-filter': 'refusal',
  other: 'end_turn',
} satisfies Record<string, Anthropic.StopReason>;
const OLLAMA = { stop: 'stop', length: 'length', 'tool-calls': 'stop', 'content-filter': 'stop', other: 'stop' };
const RESPONSES = {
  stop: 'completed',
  length: 'incomplete',
  'tool-calls': 'completed',
  'content-filter': 'incomplete',
  other: 'completed',
} satisfies Record<string, OpenAI.Responses.ResponseStatus>;

const OPENAI_FAILURE = /data: \{"error":\{.*"code":"engine_failed"\}\}\n\n$/;
const OLLAMA_FAILURE = /\n\{"error":"The model stopped [^\n]*"\}\n$/;

const STYLES: readonly Style[] = [
  {
    name: 'OpenAI chat',
    route: chatCompletions,
    request: { model: 'm', messages },
    reasonOf: at('choices.0.finish_reason'),
    reasons: OPENAI_CHAT,
    inStream: (reason) => `"finish_reason":"${reason}"`,
    failure: OPENAI_FAILURE,
  },
  {
    name: 'OpenAI completions',
    route: completions,
    request: { model: 'm', prompt: 'Hello' },
    reasonOf: at('choices.0.finish_reason'),
    reasons: OPENAI_TEXT,
    inStream: (reason) => `"finish_reason":"${reason}"`,
    failure: OPENAI_FAILURE,
  },
  {
    name: 'Anthropic messages',
    route: createMessage,
    request: { model: 'm', messages, max_tokens: 9 },
    reasonOf: at('stop_reason'),
    reasons: ANTHROPIC,
    inStream: (reason) => `"stop_reason":"${reason}"`,
    failure: /event: error\ndata: \{"type":"error","error":\{"type":"api_error",.*\}\}\n\n$/,
  },
  {
    name: 'Open Responses',
    route: createResponse,
    request: { model: 'm', input: 'Hello', store: false },
    reasonOf: at('status'),
    reasons: RESPONSES,
    inStream: (reason) => `event: response.${reason}\n`,
    failure: /event: response\.failed\n.*"code":"engine_failed".*\n\ndata: \[DONE\]\n\n$/,
  },
  ...(
    [
      ['Ollama chat', ollamaChat, { model: 'm', messages }],
      ['Ollama generate', ollamaGenerate, { model: 'm', prompt: 'Hello' }],
    ] as const
  ).map(([name, route, request]) => ({
    name,
    route,
    request,
    reasonOf: at('done_reason'),
    reasons: OLLAMA,
    inStream: (reason: string) => `"done_reason":"${reason}"`,
    failure: OLLAMA_FAILURE,
  })),
];

describe.each(STYLES)('$name', ({ route, request, reasonOf, reasons, inStream, failure, name }) => {
  test.each(Object.entries(reasons) as [Exclude<Reason, 'error' | 'interrupted'>, string][])(
    'an answer that ended for the reason "%s" says "%s"',
    async (reason, told) => {
      const { body } = await ask(route, { ...request, stream: false }, reason);
      expect(reasonOf(body as object)).toBe(told);
      if (name === 'Ollama chat') expect(ollamaFaults('ChatResponse', body)).toEqual([]);
      if (name === 'Open Responses') expectValidResponse(body as never);
      expect(await textOf(await ask(route, { ...request, stream: true }, reason))).toContain(inStream(told));
    },
  );

  test.each([
    ['that ended because of an error', 'error'],
    ['that was interrupted', 'interrupted'],
    ['that just stops coming', undefined],
  ] as const)('one %s is a failure, and no answer', async (_, reason) => {
    const whole = ask(route, { ...request, stream: false }, reason);
    await expect(whole).rejects.toThrow(expect.objectContaining({ code: 'engine_failed' }));
    const text = await textOf(await ask(route, { ...request, stream: true }, reason));
    expect(text).toMatch(failure);
    for (const told of new Set(Object.values(reasons))) expect(text).not.toContain(inStream(told as string));
  });
});
