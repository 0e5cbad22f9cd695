/** What a revocation ends in the running service, and in which order: the sealed word first, then the relays. */
import { within, type SetTimer } from '../core/timer.ts';
import type { LiveRequests } from '../gateway/live-requests.ts';
import type { ChannelServer } from '../gateway/sealed/channel-server.ts';
import type { RevocationListener } from '../identity/node/key-revocation.ts';
import type { RelayTunnels } from './relay-tunnels.ts';

/** More than the channel and the requests take by themselves; whatever hangs beyond it is left to end alone. */
const END_MS = 2000;

interface Ends {
  readonly channelServer: Pick<ChannelServer, 'revoke'>;
  readonly live: Pick<LiveRequests, 'end'>;
  readonly relays: Pick<RelayTunnels, 'changed'>;
  readonly setTimer: SetTimer;
}

/** A relay that hears of a revocation closes the device's connection, so the channel says goodbye before. */
export function endRevoked({ channelServer, live, relays, setTimer }: Ends): RevocationListener {
  const inTime = async (ending: Promise<number>): Promise<number> => (await within(END_MS, ending, setTimer)) ?? 1;
  return async (kids) => {
    const goodbyes = inTime(channelServer.revoke(kids)).finally(() => relays.changed());
    const [sealed, plain] = await Promise.all([goodbyes, inTime(live.end(kids))]);
    return sealed + plain;
  };
}
