/** Requests as no well-behaved client sends them, and answers as they come over the wire. */
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';

export interface RawAnswer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface RawRequest {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly host?: string;
}

export async function ask(
  port: number,
  { method = 'GET', path = '/v1/models', headers = {}, body, host = '127.0.0.1' }: RawRequest = {},
): Promise<RawAnswer> {
  const sent = request({ host, port, method, path, headers, agent: false });
  // Whoever has the whole answer leaves, and may be in the middle of sending then.
  sent.on('error', () => undefined).end(body);
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode ?? 0, headers: answer.headers, body: await text(answer) };
}
