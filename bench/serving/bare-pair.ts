/**
 * The least that two processes can do: one reads a chat request from HTTP, the other has the engine, and the answer goes
 * back as JSON. The same file is both; whoever starts it starts the server.
 */
import { fork } from 'node:child_process';
import { createServer } from 'node:http';
import { fileURLToPath } from 'node:url';
import { loadBareEngine } from './bare-engine.ts';

interface Call {
  readonly id: number;
  readonly message: string;
  readonly maxTokens: number;
}

const [modelPath = '', role] = process.argv.slice(2);
process.on('disconnect', () => process.exit(0));
if (role === 'engine') await runEngine();
else await runServer();

async function runEngine(): Promise<void> {
  const answer = await loadBareEngine(modelPath);
  process.on('message', ({ id, message, maxTokens }: Call) => {
    void answer(message, maxTokens).then((text) => process.send?.({ id, text }));
  });
  process.send?.('ready');
}

async function runServer(): Promise<void> {
  const engine = fork(fileURLToPath(import.meta.url), [modelPath, 'engine'], { serialization: 'advanced' });
  await new Promise((resolve) => engine.once('message', resolve));
  const waiting = new Map<number, (text: string) => void>();
  engine.on('message', ({ id, text }: { readonly id: number; readonly text: string }) => waiting.get(id)?.(text));
  let lastId = 0;
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece: Buffer) => (body += piece.toString()));
    request.on('end', () => {
      const { messages, max_tokens: maxTokens } = JSON.parse(body) as {
        readonly messages: readonly { readonly content: string }[];
        readonly max_tokens: number;
      };
      lastId += 1;
      const id = lastId;
      waiting.set(id, (text) => {
        waiting.delete(id);
        const answer = JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: text } }] });
        response.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(answer) });
        response.end(answer);
      });
      engine.send({ id, message: messages[0]?.content ?? '', maxTokens } satisfies Call);
    });
  });
  server.listen(0, '127.0.0.1', () => {
    const address = server.address();
    process.send?.({ port: typeof address === 'object' ? address?.port : 0 });
  });
}
