/** Official clients on a second laptop, configured by nothing but the address: JSON in, what they were told out. */
import { json } from 'node:stream/consumers';
import Anthropic from '@anthropic-ai/sdk';
import { Ollama } from 'ollama';
import OpenAI from 'openai';

const { url } = (await json(process.stdin)) as { url: string };
const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];
const model = 'foundation';
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: 'any', maxRetries: 0 });
const ollama = new Ollama({ host: url });

const told: Record<string, string> = {};
async function tell(name: string, ask: () => Promise<string>): Promise<void> {
  told[name] = await ask().catch((error: unknown) => String(error));
}
await tell('openai', async () => {
  const answer = await openai.chat.completions.create({ model, messages: question });
  return answer.choices[0]?.message.content ?? '';
});
await tell('openai stream', async () => {
  let text = '';
  for await (const chunk of await openai.chat.completions.create({ model, messages: question, stream: true })) {
    text += chunk.choices[0]?.delta.content ?? '';
  }
  return text;
});
await tell('openai responses', async () => (await openai.responses.create({ model, input: question })).output_text);
await tell('anthropic stream', () =>
  anthropic.messages.stream({ model, max_tokens: 100, messages: question }).finalText(),
);
await tell('ollama', async () => (await ollama.chat({ model, messages: question })).message.content);
await tell('ollama stream', async () => {
  let text = '';
  for await (const part of await ollama.chat({ model, messages: question, stream: true })) text += part.message.content;
  return text;
});
process.stdout.write(JSON.stringify(told));
