/** The listening sockets: `localhost` is an IPv4 and an IPv6 address. Nothing outside this machine can reach them. */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { bindAll } from '../../gateway/bind.ts';

/** As the gateway's own. Longer than the 60 s after which common clients give up an idle connection by themselves. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
const REQUEST_TIMEOUT_MS = 300_000;
const HEADERS_TIMEOUT_MS = 30_000;

export interface LoopbackListener {
  readonly port: number;
  /** Accepts nothing more; resolves when the requests under way have been answered. */
  close(): Promise<void>;
  /** Cuts every connection that is left. */
  cut(): void;
}

/**
 * @param port 0 takes a free one, the same for both addresses
 * @throws {NodeJS.ErrnoException} `EADDRINUSE`, also where only one of the two is taken: clients try either. Its
 *   `address` says which
 */
export async function listenOnLoopback(handle: RequestListener, port: number): Promise<LoopbackListener> {
  /** Connections without a request under way, those that never had one included. */
  const waiting = new Set<Socket>();
  let isClosing = false;
  const create = (): Server => {
    const server = createServer(
      {
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        headersTimeout: HEADERS_TIMEOUT_MS,
      },
      (request, response) => {
        const { socket } = request;
        waiting.delete(socket);
        response.once('close', () => {
          if (isClosing) socket.destroySoon();
          else if (!socket.destroyed) waiting.add(socket);
        });
        handle(request, response);
      },
    );
    return server.on('connection', (socket: Socket) => {
      waiting.add(socket);
      socket.once('close', () => waiting.delete(socket));
    });
  };
  const { servers, port: bound } = await bindAll(create, { hosts: ['127.0.0.1', '::1'], port });
  return {
    port: bound,
    async close() {
      isClosing = true;
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
      for (const socket of waiting) socket.destroy();
      await Promise.all(closed);
    },
    cut: () => servers.forEach((server) => server.closeAllConnections()),
  };
}
