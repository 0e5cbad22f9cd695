/**
 * HTTP with as little as possible between the clock and the socket: requests made once, answers read only as far as
 * to know where they end. For our own servers' answers, not for any server's.
 */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export function request(
  method: string,
  path: string,
  body?: object,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const json = body === undefined ? '' : JSON.stringify(body);
  const head = [`${method} ${path} HTTP/1.1`, 'host: localhost', 'content-type: application/json'];
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return Buffer.from([...head, ...more, `content-length: ${Buffer.byteLength(json)}`, '', json].join('\r\n'));
}

export interface Connection {
  readonly socket: Socket;
  /** Sends one request and waits for the whole answer, which must be 200. */
  exchange(bytes: Buffer): Promise<string>;
  close(): void;
}

export async function openConnection(port: number): Promise<Connection> {
  const socket = connect({ host: '127.0.0.1', port, noDelay: true });
  await once(socket, 'connect');
  let received = '';
  let answered: ((text: string) => void) | undefined;
  socket.setEncoding('latin1');
  socket.on('data', (chunk: string) => {
    received += chunk;
    if (!isComplete(received)) return;
    const text = received;
    received = '';
    answered?.(text);
  });
  return {
    socket,
    async exchange(bytes) {
      const answer = new Promise<string>((resolve) => (answered = resolve));
      socket.write(bytes);
      const text = await answer;
      if (!text.startsWith('HTTP/1.1 200')) throw new Error(`the server answered ${text.slice(0, 200)}`);
      return text;
    },
    close: () => socket.destroy(),
  };
}

function isComplete(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd === -1) return false;
  const length = /content-length: (\d+)/i.exec(text.slice(0, headEnd))?.[1];
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length >= headEnd + 4 + Number(length);
}

/** A streamed answer: when each piece of it came, by `performance.now()`. */
export async function streamTimes(
  port: number,
  bytes: Buffer,
): Promise<{ text: string; firstMs: number; lastMs: number }> {
  const connection = await openConnection(port);
  const { socket } = connection;
  let text = '';
  let firstMs = 0;
  let lastMs = 0;
  socket.removeAllListeners('data');
  socket.on('data', (chunk: string) => {
    text += chunk;
    if (!/"content":"/.test(chunk)) return;
    lastMs = performance.now();
    firstMs ||= lastMs;
  });
  socket.write(bytes);
  while (!text.endsWith('\r\n0\r\n\r\n')) await once(socket, 'data');
  connection.close();
  return { text, firstMs, lastMs };
}
