/** A TCP proxy that a test can silence: the sockets stay open, and nothing comes through any more. */
import { connect, createServer, type Socket } from 'node:net';
import { once } from 'node:events';

export interface TcpBetween {
  readonly port: number;
  /** From now on nothing passes, in either direction; nobody is told. */
  silence(): void;
  speak(): void;
  close(): Promise<void>;
}

export async function tcpBetween(targetPort: number): Promise<TcpBetween> {
  const sockets = new Set<Socket>();
  let isSilent = false;
  const server = createServer((inside) => {
    const outside = connect(targetPort, '127.0.0.1');
    for (const [from, to] of [
      [inside, outside],
      [outside, inside],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => !isSilent && to.write(bytes));
      from.on('error', () => undefined);
      from.on('close', () => !isSilent && to.destroy());
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    silence: () => (isSilent = true),
    speak: () => (isSilent = false),
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
