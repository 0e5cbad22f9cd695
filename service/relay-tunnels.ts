/** The service's ways to its relays: opened when the identity is, and told whom they may let in. */
import { tagDay } from '../channel/relay-tag.ts';
import type { RoutingId } from '../channel/keys.ts';
import { describeError } from '../core/describe-error.ts';
import type { Database } from '../storage/database.ts';
import { findDiskFault, remedyOf } from '../storage/disk-fault.ts';
import type { SetTimer } from '../core/timer.ts';
import type { Pairings } from '../gateway/access-key-source.ts';
import type { Relays, RelayState } from '../gateway/relays.ts';
import type { ChannelServer } from '../gateway/sealed/channel-server.ts';
import type { Identity } from '../identity/node/open-identity.ts';
import { createRelayEpochs } from '../identity/node/relay-epochs.ts';
import type { AllowedTag } from '../relay-client/allow-list.ts';
import type { ProxyEnvironment } from '../relay-client/proxy.ts';
import { createRelayTunnel, type RelayTunnel } from '../relay-client/relay-tunnel.ts';
import { internalErrorText } from './internal-error.ts';
import { LingeringTags } from './lingering-tags.ts';
import { watchNetwork } from './network-watch.ts';
import { admitStream } from './relayed-stream.ts';

export interface RelayTunnels extends Relays {
  /** Opens them when the identity is open. @param channelServer where what comes through them goes */
  begin(channelServer: RelayedChannelServer): void;
  /** Whom they may let in has changed. */
  changed(): void;
  /** What was written before still goes out. */
  close(): Promise<void>;
}

type RelayedChannelServer = Pick<ChannelServer, 'handle'>;

export interface RelayTunnelsOptions {
  /** Each as `isRelayOrigin` wants it. */
  readonly origins: readonly string[];
  readonly opened: Promise<{ readonly identity: Pick<Identity, 'relayKey'>; readonly pairings: Pairings }>;
  readonly database: Database;
  readonly environment: ProxyEnvironment;
  readonly say: (words: string) => void;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly setTimer: SetTimer;
  /** 0 <= n < 1 */
  readonly random: () => number;
}

interface OpenTunnel {
  readonly origin: string;
  readonly routingId: RoutingId;
  readonly tunnel: RelayTunnel;
  readonly lingering: LingeringTags;
}

const DAY_MS = 86_400_000;
/** After the database did not take what the tunnels need. */
const RETRY_MS = 10_000;

export function createRelayTunnels(options: RelayTunnelsOptions): RelayTunnels {
  const { opened, setTimer } = options;
  let tunnels: readonly OpenTunnel[] = [];
  let isClosed = false;
  const changed = (): void => tunnels.forEach(({ tunnel }) => tunnel.changed());
  const open = async (channelServer: RelayedChannelServer): Promise<void> => {
    const identity = await opened;
    if (isClosed) return;
    tunnels = openAll(identity, { ...options, channelServer });
    identity.pairings.onChange(changed);
  };
  let cancelRetry = (): void => undefined;
  let hasSaid = false;
  const openOrRetry = (channelServer: RelayedChannelServer): void => {
    open(channelServer).catch((error: unknown) => {
      if (!hasSaid) options.say(failureText(error));
      hasSaid = true;
      if (!isClosed) cancelRetry = setTimer(RETRY_MS, () => openOrRetry(channelServer));
    });
  };
  const network = watchNetwork({ setTimer, onChange: () => tunnels.forEach(({ tunnel }) => tunnel.retryNow()) });
  return {
    begin: openOrRetry,
    list: () => tunnels.map(stateOf),
    changed,
    async close() {
      isClosed = true;
      cancelRetry();
      network.close();
      for (const { lingering } of tunnels) lingering.close();
      await Promise.all(tunnels.map(({ tunnel }) => tunnel.close()));
    },
  };
}

type Opened = Awaited<RelayTunnelsOptions['opened']>;

function openAll(
  { identity, pairings }: Opened,
  options: RelayTunnelsOptions & { readonly channelServer: RelayedChannelServer },
): readonly OpenTunnel[] {
  const { database, channelServer, environment, say, now, setTimer, random } = options;
  const epochs = createRelayEpochs({ database, now });
  return options.origins.map((origin) => {
    const key = identity.relayKey(origin);
    const lingering = new LingeringTags({
      tags: () => tagsOf(pairings, key.routingId, now()),
      setTimer,
      onGone: () => tunnel.changed(),
    });
    const tunnel = createRelayTunnel({
      url: origin,
      origin,
      key,
      nextEpoch: () => epochs.next(origin),
      tags: () => lingering.list(),
      onStream: (stream) => admitStream(stream, { channelServer, setTimer }),
      onError: (error) =>
        say(`what a device sent through a relay failed here: ${JSON.stringify(describeError(error))}`),
      environment,
      say,
      now,
      setTimer,
      random,
    });
    return { origin, routingId: key.routingId, tunnel, lingering };
  });
}

function failureText(error: unknown): string {
  const found = findDiskFault(error);
  if (found === undefined)
    return `${internalErrorText(error)}\nBecause of that, relays are not reached. Postern keeps trying.`;
  return `Relays are not reached: SVC_HOME can't be written (${found.code}). ${remedyOf(found.fault)} Postern keeps trying.`;
}

/** A device's clock, or the relay's, may be a day off: a tag is good from the day before its own to the day after. */
function tagsOf(
  { devices, invites }: Pick<Pairings, 'devices' | 'invites'>,
  routingId: RoutingId,
  nowMs: number,
): readonly AllowedTag[] {
  const today = tagDay(nowMs);
  const ofDevices = [today - 1, today, today + 1].flatMap((day) => {
    const expiresAtMs = (day + 2) * DAY_MS;
    return devices.relayTags(routingId, day).map((tag) => ({ tag, expiresAtMs, tagClass: 'device' }) as const);
  });
  const ofInvites = invites
    .relayTags(routingId)
    .map(({ tag, expiresAtS }) => ({ tag, expiresAtMs: expiresAtS * 1000, tagClass: 'pairing' }) as const);
  return [...ofDevices, ...ofInvites];
}

function stateOf({ origin, routingId, tunnel }: OpenTunnel): RelayState {
  const { phase, untilMs, ...state } = tunnel.state();
  return { ...state, origin, routingId, phase: phase === 'closed' ? 'waiting' : phase, retryAtMs: untilMs };
}
