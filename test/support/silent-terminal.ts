import type { Terminal } from '../../cli/command.ts';

/** A terminal that nobody reads and nobody types into. */
export const silentTerminal: Terminal = {
  print: () => undefined,
  write: () => undefined,
  say: () => undefined,
  isInteractive: false,
  read: async () => '',
  readPiped: async () => undefined,
};
