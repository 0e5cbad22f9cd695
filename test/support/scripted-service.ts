/** What the command line takes for the running service: it says what a test tells it to, when it tells it to. */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

export interface ScriptedChat {
  readonly body: { readonly model: string; readonly messages: readonly { role: string; content: string }[] };
  /** Sends a piece of the answer. */
  say(content: string): void;
  /** Sends a piece of what the model thinks. */
  think(content: string): void;
  /** Ends the answer as it ends by itself. */
  finish(reason?: string): void;
  /** Sends any event. */
  send(event: object): void;
  /** Breaks the connection. */
  cut(): void;
  /** Resolves when the client has gone. */
  readonly left: Promise<unknown>;
  hasLeft(): boolean;
}

export interface ScriptedService {
  readonly port: number;
  /** The next request for an answer, in the order they come. */
  readonly nextChat: () => Promise<ScriptedChat>;
  close(): Promise<void>;
}

export async function startScriptedService(
  home: string,
  { models = ['scripted'] }: { readonly models?: readonly string[] } = {},
): Promise<ScriptedService> {
  const chats: ScriptedChat[] = [];
  const waiting: ((chat: ScriptedChat) => void)[] = [];
  const arrive = (chat: ScriptedChat): void => {
    const take = waiting.shift();
    if (take === undefined) chats.push(chat);
    else take(chat);
  };
  const server = createServer((request, response) => {
    const json = (status: number, body: object): void => void response.writeHead(status).end(JSON.stringify(body));
    if (request.url === '/admin/status') return json(200, { pid: process.pid, resident_models: [] });
    if (request.url === '/v1/models') return json(200, { data: models.map((id) => ({ id })) });
    const named = models.find((id) => request.url === `/v1/models/${id}`);
    if (named !== undefined) return json(200, { id: named });
    if (request.url !== '/v1/chat/completions') return json(404, { error: { message: 'There is no such model.' } });
    void chatOf(request, response).then(arrive);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const run = { pid: process.pid, host: '127.0.0.1', port, token: 'token', startedAtMs: 0 };
  await writeFile(join(home, 'run.json'), JSON.stringify(run), { mode: 0o600 });
  return {
    port,
    nextChat: async () => chats.shift() ?? new Promise((resolve) => waiting.push(resolve)),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function chatOf(request: IncomingMessage, response: ServerResponse): Promise<ScriptedChat> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = JSON.parse(Buffer.concat(pieces).toString()) as ScriptedChat['body'];
  response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
  const send = (event: object): void => void response.write(`data: ${JSON.stringify(event)}\n\n`);
  const delta = (content: object, reason: string | null = null): void =>
    send({ choices: [{ index: 0, delta: content, finish_reason: reason }] });
  return {
    body,
    say: (content) => delta({ content }),
    think: (content) => delta({ reasoning_content: content }),
    finish(reason = 'stop') {
      delta({}, reason);
      send({ choices: [], usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 } });
      response.end('data: [DONE]\n\n');
    },
    send,
    cut: () => void response.destroy(),
    left: once(response, 'close'),
    hasLeft: () => response.closed,
  };
}
