/**
 * The channel server as it is before anybody comes: what opens envelopes takes a while to load, and a service that nobody is paired
 * with never needs it.
 */
import { remembered } from '../../core/remembered.ts';
import type { ChannelServer } from './channel-server.ts';

/** @param load called when the first device comes, and again by the next one where it failed */
export function lazyChannelServer(load: () => Promise<ChannelServer>): ChannelServer {
  const loading = remembered(load);
  let channelServer: ChannelServer | undefined;
  let isClosed = false;
  const loaded = async (): Promise<ChannelServer> => {
    channelServer = await loading.get();
    // It says so itself, to whoever comes now.
    if (isClosed) await channelServer.close();
    return channelServer;
  };
  return {
    async *handle(op, source, bytes) {
      yield* (await loaded()).handle(op, source, bytes);
    },
    challenge: async (source) => (await loaded()).challenge(source),
    // Nothing goes on behind a channel server that nobody has come in by.
    revoke: async (kids) => (await loading.find())?.revoke(kids) ?? 0,
    async close() {
      isClosed = true;
      await (await loading.find())?.close();
    },
    counts: () => channelServer?.counts() ?? { sessions: 0, calls: 0, heldBytes: 0 },
  };
}
