/** Whether the service can listen: nobody else has its port, at any of the addresses that clients try. */
import { createServer } from 'node:net';
import { bindAll, isInUse } from '../../../gateway/bind.ts';
import { addressOf, listenHosts } from '../../../service/addresses.ts';
import type { Check, Finding } from './check.ts';

export const port: Check = {
  name: 'port',
  run({ settings, server }) {
    if (server !== undefined) return { state: 'ok', message: `${server.run.port}, where the service runs` };
    const wanted = settings['server.port'];
    if (wanted === 0) return { state: 'ok', message: 'any free one' };
    return tryPort(wanted, listenHosts(settings['server.expose']));
  },
};

async function tryPort(wanted: number, hosts: readonly [string, string]): Promise<Finding> {
  try {
    const { servers } = await bindAll(createServer, { hosts, port: wanted });
    for (const server of servers) server.close();
    return { state: 'ok', message: `${wanted} is free` };
  } catch (error) {
    if (!isInUse(error)) throw error;
    return {
      state: 'failed',
      message: `another program listens on ${addressOf(error)} port ${wanted}`,
      remedy: 'Stop it, or choose another port: postern settings set server.port N',
    };
  }
}
