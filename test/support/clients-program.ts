/** Official clients with an access key, from where this runs: JSON in, what they were told out. */
import { json } from 'node:stream/consumers';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';

const { url, key } = (await json(process.stdin)) as { url: string; key: string };
const question = [{ role: 'user' as const, content: 'What is the capital of France?' }];
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: key, maxRetries: 0 });
const anthropic = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
// As Anthropic's own documentation has it; the client of today sends the other header.
const header = new Anthropic({ baseURL: url, apiKey: null, defaultHeaders: { 'x-api-key': key }, maxRetries: 0 });

const told: Record<string, string> = {};
async function tell(name: string, ask: () => Promise<string>): Promise<void> {
  told[name] = await ask().catch((error: unknown) => String(error));
}
await tell('openai', async () => {
  const answer = await openai.chat.completions.create({ model: 'foundation', messages: question });
  return answer.choices[0]?.message.content ?? '';
});
await tell('openai stream', async () => {
  let text = '';
  const stream = await openai.chat.completions.create({ model: 'foundation', messages: question, stream: true });
  for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
  return text;
});
for (const [name, client] of Object.entries({ anthropic, 'anthropic x-api-key': header })) {
  await tell(name, () =>
    client.messages.stream({ model: 'foundation', max_tokens: 100, messages: question }).finalText(),
  );
}
process.stdout.write(JSON.stringify(told));
