/**
 * The listening sockets: one or two, since `localhost` is an IPv4 and an IPv6 address, with one set of limits and one
 * orderly end.
 */
import { createServer, type RequestListener, type Server } from 'node:http';
import type { Socket } from 'node:net';
import type { ConnectionCounts } from './route.ts';

/** Longer than the 60 s after which common clients and proxies give up an idle connection by themselves. */
const KEEP_ALIVE_TIMEOUT_MS = 72_000;
/** For a whole request to arrive, 32 MiB over a slow network included. */
const REQUEST_TIMEOUT_MS = 300_000;
const HEADERS_TIMEOUT_MS = 30_000;

export interface Listener {
  /**
   * Listens on the first host, and on the others where this machine has them.
   * @param options.port 0 takes a free one, the same for all hosts
   * @throws {NodeJS.ErrnoException} `EADDRINUSE`, `EACCES`, …
   */
  listen(options: { readonly hosts: readonly [string, ...string[]]; readonly port: number }): Promise<{ port: number }>;
  counts(): ConnectionCounts;
  /** Accepts nothing more; resolves when the requests under way have been answered. */
  close(): Promise<void>;
  /** Cuts every connection that is left. */
  cut(): void;
}

export function createListener(handle: RequestListener): Listener {
  const servers: Server[] = [];
  const counts = { requests: 0, sockets: 0 };
  /** Connections that wait for a request, those that never had one included: browsers open such ahead of need. */
  const waiting = new Set<Socket>();
  let isClosing = false;

  function open(host: string, port: number): Promise<Server> {
    const server = createServer(
      {
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        headersTimeout: HEADERS_TIMEOUT_MS,
      },
      (request, response) => {
        const { socket } = request;
        counts.requests += 1;
        waiting.delete(socket);
        response.once('close', () => {
          counts.requests -= 1;
          if (isClosing) socket.destroySoon();
          else if (!socket.destroyed) waiting.add(socket);
        });
        handle(request, response);
      },
    );
    server.on('connection', (socket) => {
      counts.sockets += 1;
      waiting.add(socket);
      socket.once('close', () => {
        counts.sockets -= 1;
        waiting.delete(socket);
      });
    });
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ host, port }, () => {
        server.off('error', reject);
        servers.push(server);
        resolve(server);
      });
    });
  }

  return {
    async listen({ hosts: [first, ...others], port }) {
      const address = (await open(first, port)).address();
      const bound = typeof address === 'object' && address !== null ? address.port : port;
      for (const host of others) await open(host, bound).catch(() => undefined);
      return { port: bound };
    },
    counts: () => ({ ...counts }),
    async close() {
      isClosing = true;
      const closed = servers.map((server) => new Promise((resolve) => server.close(resolve)));
      for (const socket of waiting) socket.destroy();
      await Promise.all(closed);
    },
    cut() {
      for (const server of servers) server.closeAllConnections();
    },
  };
}
