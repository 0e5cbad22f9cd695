/** A way through a relay for devices that speak plain HTTP: each request is a stream, each answer what came back of it. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { buffer } from 'node:stream/consumers';
import type { JoinedRelay } from '../../relay/wire/join-relay.ts';

export interface RelayShim {
  readonly url: string;
  close(): Promise<void>;
}

/** @param joined the connection that its streams belong to */
export async function relayShim(joined: () => JoinedRelay | Promise<JoinedRelay>): Promise<RelayShim> {
  const server = createServer((request, response) => {
    const carry = async (): Promise<void> => {
      const body = await buffer(request);
      const stream = (await joined()).open(body[1] ?? 0);
      response.on('close', () => stream.reset());
      await stream.write(new Uint8Array(body));
      stream.end();
      response.flushHeaders();
      await pipeline(Readable.from(stream.answer), response);
    };
    carry().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
