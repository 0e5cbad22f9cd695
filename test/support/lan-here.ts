/** The way to a port within the owner's network, which a test can take away and bring back. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface LanHere {
  readonly url: string;
  /** How often somebody connected. */
  readonly connections: number;
  /** How many of those are open. */
  readonly open: number;
  /** Cuts what is connected, and refuses all others. */
  leave(): Promise<void>;
  return(): Promise<void>;
}

/** Until the test ends. @param targetUrl where it leads; without it, it swallows what it is sent and never answers */
export async function lanHere(targetUrl?: string): Promise<LanHere> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const listen = async (port: number): Promise<Server> => {
    const server = createServer((inside) => {
      connections += 1;
      keep(inside);
      if (targetUrl === undefined) return void inside.resume();
      const outside = connect(Number(new URL(targetUrl).port), '127.0.0.1');
      keep(outside);
      inside.pipe(outside).pipe(inside);
      for (const [one, other] of [
        [inside, outside],
        [outside, inside],
      ] as const)
        one.on('close', () => other.destroy());
    });
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return server;
  };
  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  };
  let server = await listen(0);
  const { port } = server.address() as AddressInfo;
  const leave = async (): Promise<void> => {
    const closed = server.listening ? once(server, 'close') : undefined;
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
  };
  onTestFinished(leave);
  return {
    url: `http://127.0.0.1:${port}`,
    get connections() {
      return connections;
    },
    get open() {
      return sockets.size;
    },
    leave,
    async return() {
      server = await listen(port);
    },
  };
}
