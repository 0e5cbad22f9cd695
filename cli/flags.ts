/** Values of flags that several commands take. */
import { MAX_AGENT_INDEX } from '../identity/agent-key.ts';
import { UsageError, type CommandInput } from './command.ts';

export type Flag = CommandInput['flags'][string];

/** @throws {UsageError} for what is no agent's number */
export function agentIndexOf(flag: Flag): number | undefined {
  if (flag === undefined) return undefined;
  const index = typeof flag === 'string' && /^\d{1,10}$/.test(flag) ? Number(flag) : Infinity;
  if (index <= MAX_AGENT_INDEX) return index;
  throw new UsageError('--agent: expected the number of an agent, from 0.');
}

const MAX_PORT = 65_535;

/** @throws {UsageError} for what is no TCP port; 0 is any free one */
export function portOf(flag: Flag): number | undefined {
  if (flag === undefined) return undefined;
  const port = typeof flag === 'string' && /^\d{1,5}$/.test(flag) ? Number(flag) : Infinity;
  if (port <= MAX_PORT) return port;
  throw new UsageError(`--port: "${String(flag)}" is not a port number (0 to ${MAX_PORT}).`);
}

const UNIT_S: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

/** Seconds in `90s`, `30m`, `12h` or `7d`. */
export function findDurationS(flag: Flag): number | undefined {
  const [, count, unit = ''] = /^([1-9]\d{0,9})([smhd])$/.exec(typeof flag === 'string' ? flag : '') ?? [];
  const unitS = UNIT_S[unit];
  return count === undefined || unitS === undefined ? undefined : Number(count) * unitS;
}
