import type { Command } from '../command.ts';
import { findLiveServer } from '../live-server.ts';
import { relayLine, relaysIn } from './relay-status.ts';

export const status: Command = {
  name: 'status',
  summary: 'tell whether the service runs (exit code 0) or not (1)',
  usage: `Usage: postern status [--json]

Tells whether the service runs, where, which model is loaded, how its relays are, and whether
any request awaits your approval. Exit code 0 when it runs, 1 when it does not.

  --json   one JSON object on stdout

Example:
  postern status --json
`,
  options: { json: { type: 'boolean' } },
  async run({ flags }, { terminal, home }) {
    const server = await findLiveServer(home);
    const answer = server === undefined ? undefined : await server.ask('GET', 'status');
    if (flags['json'] === true) {
      terminal.print(JSON.stringify({ running: server !== undefined, ...(server && { url: server.url }), ...answer }));
    } else if (server === undefined) {
      terminal.print([{ text: 'stopped', style: 'warning' }]);
    } else {
      const models = Array.isArray(answer?.['resident_models']) ? answer['resident_models'].join(', ') : '';
      const loaded = models === '' ? 'no model loaded' : `loaded: ${models}`;
      const running = { text: 'running', style: 'good' } as const;
      terminal.print([running, ` on ${server.url} (pid ${server.run.pid}), ${loaded}`]);
      for (const relay of relaysIn(answer)) terminal.print(`relay ${relayLine(relay)}`);
      const waiting = Number(answer?.['approvals_waiting'] ?? 0);
      if (waiting > 0)
        terminal.print(
          waiting === 1 ? '1 approval waits: postern approvals' : `${waiting} approvals wait: postern approvals`,
        );
    }
    return server === undefined ? 1 : 0;
  },
};
