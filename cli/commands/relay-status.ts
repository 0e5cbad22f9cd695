/** `postern relay status`, and the lines on relays that other commands share. */
import * as z from 'zod';
import { relayResourceSchema, type RelayResource } from '../../gateway/relays.ts';
import { refuseMore } from '../actions.ts';
import type { CommandContext, CommandInput, ExitCode } from '../command.ts';
import { formatBytes } from '../format-bytes.ts';
import { requireLiveServer } from '../live-server.ts';
import { localTime } from '../local-time.ts';

const statusSchema = z.object({ relays: z.array(relayResourceSchema) });

/** The relays in an answer of `/admin/status`. */
export function relaysIn(status: unknown): readonly RelayResource[] {
  return statusSchema.parse(status).relays;
}

/** @returns 0 where this gateway is connected to all its relays */
export async function relayStatus(
  { flags, positionals }: CommandInput,
  { home, terminal }: Pick<CommandContext, 'home' | 'terminal'>,
): Promise<ExitCode> {
  refuseMore(positionals);
  const server = await requireLiveServer(home);
  const relays = relaysIn(await server.ask('GET', 'status'));
  if (flags['json'] === true) terminal.print(JSON.stringify(relays));
  else for (const relay of relays) terminal.print(`${relayLine(relay)}\n${detailsOf(relay)}`);
  if (relays.length === 0) terminal.say(NONE);
  return relays.length > 0 && relays.every(({ state }) => state === 'connected') ? 0 : 1;
}

const NONE = `No relay is in use: only devices in the same network reach this machine. To take one:
  postern settings set relay.urls wss://relay.example.com    (then start the service again)
  postern serve --relay wss://relay.example.com
If one is set, the service connects to it once its identity is open; its log says why it has not.`;

/** In one line: where, and how it is. */
export function relayLine({ origin, state, since, retry_at: retryAt, error, contested }: RelayResource): string {
  const words = {
    connected: `connected since ${localTime(since)}`,
    connecting: error === null ? 'connecting' : `connecting; before: ${error}`,
    waiting: `not connected: ${error ?? 'it ended'}${retryAt === null ? '' : `; next try ${localTime(retryAt)}`}`,
  }[state];
  return `${origin}  ${words}${contested ? '. Another gateway registers with the same key' : ''}`;
}

function detailsOf({ routing_id: routingId, bytes_in: bytesIn, bytes_out: bytesOut }: RelayResource): string {
  return `  ${formatBytes(bytesIn)} in, ${formatBytes(bytesOut)} out
  routing id ${routingId}, by which its operator can admit this gateway`;
}
