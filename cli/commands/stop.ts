import { setTimeout as sleep } from 'node:timers/promises';
import { CommandError, type Command } from '../command.ts';
import { findLiveServer } from '../live-server.ts';

/** The server gives running answers 10 s to finish; beyond that something is wrong with it. */
const STOP_TIMEOUT_MS = 30_000;
const POLL_MS = 50;

export const stop: Command = {
  name: 'stop',
  summary: 'stop the running service',
  usage: `Usage: postern stop

Asks the running service to stop and waits until it has. Answers that are being written get a moment to finish.

Example:
  postern stop
`,
  options: {},
  async run(_input, { terminal, home }) {
    const server = await findLiveServer(home);
    if (server === undefined) {
      terminal.say('The service is not running.');
      return 0;
    }
    await server.ask('POST', 'shutdown');
    for (let waitedMs = 0; isAlive(server.run.pid); waitedMs += POLL_MS) {
      if (waitedMs > STOP_TIMEOUT_MS)
        throw new CommandError(`the service (pid ${server.run.pid}) does not stop; kill it.`);
      await sleep(POLL_MS);
    }
    terminal.say('Stopped.');
    return 0;
  },
};

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
