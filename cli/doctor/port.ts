/** Whether the service can listen: nobody else has its port, at any of the addresses that clients try. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Check } from './check.ts';

export const port: Check = {
  name: 'port',
  async run({ settings, server }) {
    if (server !== undefined) return { state: 'ok', message: `${server.run.port}, where the service runs` };
    const wanted = settings['server.port'];
    if (wanted === 0) return { state: 'ok', message: 'any free one' };
    for (const host of settings['server.expose'] ? ['0.0.0.0', '::'] : ['127.0.0.1', '::1']) {
      const code = await bindingError(host, wanted);
      if (code === 'EADDRINUSE') {
        return {
          state: 'failed',
          message: `another program listens on ${host} port ${wanted}`,
          remedy: 'Stop it, or choose another port: postern settings set server.port N',
        };
      }
    }
    return { state: 'ok', message: `${wanted} is free` };
  },
};

/** The system's error code, where the address can't be had. */
async function bindingError(host: string, wanted: number): Promise<string | undefined> {
  const server = createServer();
  try {
    server.listen({ host, port: wanted, ipv6Only: true });
    await once(server, 'listening');
    return undefined;
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
  } finally {
    server.close();
  }
}
