/** One TCP connection to a server, written to and ended as no well-behaved HTTP client would. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { until } from './wait.ts';

export interface RawConnection {
  readonly socket: Socket;
  /** What has come so far. */
  readonly text: () => string;
  /** Resolves when that much matches. */
  readonly receives: (pattern: RegExp) => Promise<string>;
  /** Resolves with everything, when the other end has closed it. */
  readonly all: () => Promise<string>;
}

export async function rawConnection(port: number): Promise<RawConnection> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  let text = '';
  const over = new Promise((resolve) => void socket.once('close', resolve));
  socket.on('data', (data: Buffer) => (text += data.toString('latin1'))).on('error', () => undefined);
  await once(socket, 'connect');
  return {
    socket,
    text: () => text,
    receives: (pattern) => until(() => (pattern.test(text) ? text : undefined)),
    all: async () => {
      if (!socket.closed) {
        socket.once('end', () => socket.end());
        await over;
      }
      return text;
    },
  };
}

interface RawRequest {
  readonly method?: string;
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  readonly version?: '1.0' | '1.1';
}

/** A request as it goes over the wire. */
export function rawRequest({ method, path, headers = {}, body, version = '1.1' }: RawRequest): string {
  const content = body === undefined ? '' : JSON.stringify(body);
  const all = {
    host: 'localhost',
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(content)) }),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method ?? (body === undefined ? 'GET' : 'POST')} ${path} HTTP/${version}\r\n${lines.join('')}\r\n${content}`;
}
