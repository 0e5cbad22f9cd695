/** Somebody between a device and its gateway, who sees and changes what he wants of what they say over HTTP. */
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface Passing {
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
}

export interface Answered {
  readonly status: number;
  readonly body: Uint8Array;
}

/** @returns what the device gets to see; `forward` is the gateway's answer to what it is given */
export type Meddle = (passing: Passing, forward: (passing: Passing) => Promise<Answered>) => Promise<Answered>;

export interface Between {
  readonly url: string;
  /** What the device said, in order. */
  readonly seen: readonly Passing[];
  close(): Promise<void>;
}

/** @param gatewayUrl where it forwards to, from an address of its own */
export async function standBetween(gatewayUrl: string, meddle: Meddle, from = '127.7.7.7'): Promise<Between> {
  const seen: Passing[] = [];
  const forward = async ({ method, path, body }: Passing): Promise<Answered> => {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { 'content-type': 'application/octet-stream' };
      const asked = httpRequest(gatewayUrl + path, { method, headers, localAddress: from, agent: false }, resolve);
      asked.on('error', reject).end(method === 'GET' ? undefined : body);
    });
    return { status: response.statusCode ?? 0, body: await buffer(response) };
  };
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const passing = { method: request.method ?? '', path: request.url ?? '', body: await buffer(request) };
    seen.push(passing);
    const { status, body } = await meddle(passing, forward);
    response.writeHead(status).end(body);
  };
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
