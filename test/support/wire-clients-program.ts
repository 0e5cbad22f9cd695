/** Official clients, streams and tool calls included, at one address and with words to watch for: JSON in, JSON out. */
import { json } from 'node:stream/consumers';
import Anthropic from '@anthropic-ai/sdk';
import { asSchema } from 'ai';
import { Ollama, type Message, type Tool } from 'ollama';
import OpenAI from 'openai';
import { WEATHER_DESCRIPTION, weatherTool } from './weather-tool.ts';

export interface WireClientsInput {
  readonly url: string;
  readonly model: string;
  /** Said in each question, besides what is asked. */
  readonly word: string;
  /** What these clients have for a key; nobody looks at it. */
  readonly key: string;
}

type Parameters = NonNullable<Tool['function']['parameters']>;

const { url, model, word, key } = (await json(process.stdin)) as WireClientsInput;
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
const ollama = new Ollama({ host: url });

const temperature = 0;
const system = { role: 'system' as const, content: `My name is ${word}.` };
const asking = (content: string) => [{ role: 'user' as const, content }];
const capital = asking('What is the capital of France?');
const weather = asking('What is the weather in Paris?');
const description = WEATHER_DESCRIPTION;
const schema = (await asSchema(weatherTool.inputSchema).jsonSchema) as Anthropic.Tool.InputSchema & Parameters;
const declared = { name: 'get_weather', description, parameters: schema };

/** Without their ids, which are never the same. */
const functionsOf = ({ tool_calls: calls = [] }: Message) => calls.map((call) => call.function);

const told: Record<string, unknown> = {};
async function tell(name: string, ask: () => Promise<unknown>): Promise<void> {
  told[name] = await ask().catch((error: unknown) => String(error));
}

for (const [name, messages] of Object.entries({ text: capital, tool: weather })) {
  const tools = name === 'tool' ? [{ type: 'function' as const, function: declared }] : [];
  const request = { model, temperature, messages: [system, ...messages], ...(tools.length > 0 ? { tools } : {}) };
  await tell(`openai ${name}`, async () => {
    const { message } = (await openai.chat.completions.create(request)).choices[0]!;
    return [message.content, message.tool_calls?.map((call) => call.type === 'function' && call.function)];
  });
  await tell(`openai stream ${name}`, async () => {
    const { message } = (await openai.chat.completions.stream(request).finalChatCompletion()).choices[0]!;
    return [message.content, message.tool_calls?.map((call) => call.type === 'function' && call.function)];
  });
  const anthropicRequest = {
    model,
    temperature,
    max_tokens: 200,
    system: system.content,
    messages,
    ...(tools.length > 0 ? { tools: [{ name: declared.name, description, input_schema: schema }] } : {}),
  };
  const blocks = ({ content }: Anthropic.Message) =>
    content.map((block) => (block.type === 'tool_use' ? [block.name, block.input] : block));
  await tell(`anthropic ${name}`, async () => blocks(await anthropic.messages.create(anthropicRequest)));
  await tell(`anthropic stream ${name}`, async () =>
    blocks(await anthropic.messages.stream(anthropicRequest).finalMessage()),
  );
  const ollamaRequest = { ...request, options: { temperature } };
  await tell(`ollama ${name}`, async () => {
    const { message } = await ollama.chat(ollamaRequest);
    return [message.content, functionsOf(message)];
  });
  await tell(`ollama stream ${name}`, async () => {
    let content = '';
    const calls: unknown[] = [];
    for await (const { message } of await ollama.chat({ ...ollamaRequest, stream: true })) {
      content += message.content;
      calls.push(...functionsOf(message));
    }
    return [content, calls];
  });
}
process.stdout.write(JSON.stringify(told));
