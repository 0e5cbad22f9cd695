/**
 * Listening on several addresses under one port, on all of them or not at all: where another program had one of them, it
 * would be taken for us by clients that try each, and would be handed their keys.
 */
import type { AddressInfo, Server } from 'node:net';

/** For a free port that has to be free at every address. */
const MAX_ATTEMPTS = 16;

/** The machine has no IPv6, or has it switched off. Anything else is somebody in the way. */
const NO_IPV6: ReadonlySet<unknown> = new Set(['EAFNOSUPPORT', 'EADDRNOTAVAIL']);

interface BindOptions {
  /** IPv6 addresses are left out where the machine has none; the first has to be an IPv4 one. */
  readonly hosts: readonly [string, ...string[]];
  /** 0 takes a free one, the same for all hosts. */
  readonly port: number;
}

export interface Bound<Listening> {
  readonly servers: readonly Listening[];
  readonly port: number;
  /** Those that are listened on. */
  readonly hosts: readonly string[];
}

/** @throws {NodeJS.ErrnoException} `EADDRINUSE`, `EACCES`, …, with the `address`; nothing is listened on then */
export async function bindAll<Listening extends Server>(
  createServer: () => Listening,
  options: BindOptions,
): Promise<Bound<Listening>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await bindOnce(createServer, options);
    } catch (error) {
      if (options.port !== 0 || !isInUse(error) || attempt === MAX_ATTEMPTS) throw error;
    }
  }
}

export function isInUse(error: unknown): boolean {
  return codeOf(error) === 'EADDRINUSE';
}

async function bindOnce<Listening extends Server>(
  createServer: () => Listening,
  { hosts, port: wanted }: BindOptions,
): Promise<Bound<Listening>> {
  const servers: Listening[] = [];
  const bound: string[] = [];
  let port = wanted;
  try {
    for (const host of hosts) {
      const server = createServer();
      const listening = await listen(server, host, port);
      if (listening === undefined) continue;
      port = listening.port;
      servers.push(server);
      bound.push(host);
    }
    return { servers, port, hosts: bound };
  } catch (error) {
    for (const server of servers) server.close();
    throw error;
  }
}

/** @returns undefined for an IPv6 address on a machine without IPv6 */
function listen(server: Server, host: string, port: number): Promise<AddressInfo | undefined> {
  return new Promise((resolve, reject) => {
    const fail = (error: unknown): void => {
      if (host.includes(':') && NO_IPV6.has(codeOf(error))) resolve(undefined);
      else reject(error);
    };
    server.once('error', fail);
    // A socket that took IPv4 as well would be in the way of the one beside it.
    server.listen({ host, port, ipv6Only: true }, () => {
      server.off('error', fail);
      const address = server.address();
      if (typeof address === 'object' && address !== null) resolve(address);
      else reject(new TypeError('a listening TCP server has an address'));
    });
  });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
