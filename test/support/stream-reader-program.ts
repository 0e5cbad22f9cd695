/** The official OpenAI client, reading a stream until it ends: JSON in; a word when it has begun, and what it was told. */
import { json } from 'node:stream/consumers';
import OpenAI from 'openai';

type SentRequest = Omit<OpenAI.ChatCompletionCreateParamsStreaming, 'model' | 'stream'>;

const { url, ...asked } = (await json(process.stdin)) as { url: string } & SentRequest;
const openai = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'any', maxRetries: 0 });
let chunks = 0;
try {
  const stream = await openai.chat.completions.create({ ...asked, model: 'foundation', stream: true });
  for await (const _chunk of stream) {
    if (chunks === 0) process.stderr.write('begun\n');
    chunks += 1;
  }
  process.stdout.write(`the end, after ${chunks}`);
} catch (error) {
  process.stdout.write(`${String(error)}, after ${chunks}`);
}
