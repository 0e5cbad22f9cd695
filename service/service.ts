/**
 * The service, put together: each area is opened with what was opened before it, and closed when all that came later is.
 * Where two areas need each other, the first has a method that the second is told to (`begin`, `leadTo`).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { writeRunFile } from '../core/config/home.ts';
import type { Settings } from './settings.ts';
import { BUSY_TIMEOUT_MS, setBusyTimeout } from '../storage/database.ts';
import { setProcessTimer } from '../core/timer.ts';
import type { Listener, Place } from '../gateway/listener.ts';
import { createLiveRequests } from '../gateway/live-requests.ts';
import { openPeerProcesses } from '../gateway/open-peer-processes.ts';
import type { PeerProcesses } from '../gateway/peer-process.ts';
import type { RequestLog } from '../gateway/request-log/request-log.ts';
import type { Services } from '../gateway/route.ts';
import { createRunToken } from '../gateway/run-token.ts';
import { createInnerCalls } from '../gateway/sealed/inner-request.ts';
import type { ChannelServer } from '../gateway/sealed/channel-server.ts';
import { openApprovals, type Approvals } from './approvals.ts';
import { createChannelCrypto } from './channel-crypto.ts';
import { CloseStack } from './close-stack.ts';
import { checkCrypto } from './crypto-check.ts';
import { gatewayFacts } from './gateway-facts.ts';
import { openGateway } from './gateway.ts';
import type { IdentityService } from './identity-service.ts';
import { openIdentity } from './identity.ts';
import { advertise, listen, openListener } from './listening.ts';
import { followSettings } from './live-settings.ts';
import { openModels, type Models } from './models.ts';
import { version } from './package.ts';
import { openPulls } from './pulls.ts';
import { openRelays } from './relays.ts';
import type { RelayTunnels } from './relay-tunnels.ts';
import { openRequestLog } from './request-recording.ts';
import { endRevoked } from './revocation.ts';
import { openChannelServer } from './channel-server.ts';
import type { ServiceClock, ServiceContext, Start } from './start.ts';
import { openStorage, type Storage } from './storage.ts';

/** How long answers under way may go on after the service was told to stop. */
const SHUTDOWN_GRACE_MS = 10_000;

export interface Service extends Place, Areas {
  /** Fires when the service was asked over HTTP to stop. */
  readonly shutDown: AbortSignal;
  /**
   * Answers under way may finish; those that take too long are told in their own stream why they end.
   * @param now fires when they may not go on any longer
   */
  stop(now: AbortSignal): Promise<void>;
}

/** What of it is of use to whoever started it. */
interface Areas extends Approvals, Pick<Storage, 'database' | 'events'>, Pick<Models, 'inference'> {
  readonly listener: Listener;
  readonly requestLog: RequestLog;
  readonly identity: IdentityService;
  readonly channelServer: ChannelServer;
  readonly relays: RelayTunnels;
  readonly peers: PeerProcesses;
}

/** What is the system's own, unless a test runs in a time of its own. */
export interface SystemParts {
  readonly clock?: ServiceClock;
  readonly openPeers?: () => Promise<PeerProcesses>;
}

const CLOCK: ServiceClock = { now: () => Date.now(), elapsed: () => performance.now(), setTimer: setProcessTimer };

export interface ServiceOptions extends ServiceContext {
  /** As the file, and whatever goes before it, say now. By default all stays as it was at the start. @throws {SettingsError} */
  readonly readSettings?: () => Promise<Settings>;
}

/** @throws {StartError} for what its owner can mend; nothing of it is left open */
export async function startService(
  settings: Settings,
  { readSettings: read = async () => settings, ...context }: ServiceOptions,
  { clock = CLOCK, openPeers = openPeerProcesses }: SystemParts = {},
): Promise<Service> {
  const shutDown = new AbortController();
  const stopping = new AbortController();
  const closing = new CloseStack();
  const { onClose } = closing;
  try {
    await checkCrypto(settings['channel.crypto']);
    const currentSettings = followSettings({ ...context, initial: settings, read });
    const start: Start<Settings> = {
      ...context,
      settings,
      currentSettings,
      clock,
      stopping: stopping.signal,
      onClose,
    };
    const areas = await open(start, { peers: await openPeers(), shutDown: () => shutDown.abort() });
    const stop = async (now: AbortSignal): Promise<void> => {
      stopping.abort();
      areas.events.close();
      await within(SHUTDOWN_GRACE_MS, areas.listener.close(), now);
      await closing.close();
    };
    return { ...areas, ...areas.listener.place(), shutDown: shutDown.signal, stop };
  } catch (error) {
    stopping.abort();
    // Why it did not start matters more than what then could not be closed.
    await closing.close().catch(() => undefined);
    throw error;
  }
}

interface FromOutside {
  readonly peers: PeerProcesses;
  readonly shutDown: () => void;
}

async function open(start: Start<Settings>, { peers, shutDown }: FromOutside): Promise<Areas> {
  const startedAtMs = Date.now();
  const kept = openStorage(start);
  const requestLog = openRequestLog(start, kept);
  const identity = openIdentity(start, kept);
  const listener = openListener(start);
  const models = openModels(start, kept);
  const pulls = openPulls(start, kept);
  const approval = openApprovals(start, { ...kept, audit: identity.audit });
  const relays = await openRelays(start, { ...kept, identity });
  const facts: Services['gatewayFacts'] = (key) => gatewayFacts(key, { ...listener.place(), relays: relays.list() });
  const inner = createInnerCalls();
  const channelCrypto = createChannelCrypto({ now: Date.now, say: start.say });
  const channelServer = openChannelServer(start, {
    ...kept,
    ...approval,
    identity,
    channelCrypto,
    gatewayFacts: facts,
    run: inner.run,
  });
  const live = createLiveRequests({ setTimer: setProcessTimer });
  const runToken = createRunToken();
  const control = {
    version,
    startedAtMs,
    connections: () => listener.counts(),
    channelFailedAtMs: () => channelCrypto.failedAtMs(),
    shutDown,
  };
  const reach = { gatewayFacts: facts, channelServer, relays };
  const parts = { kept, models, pulls, approval, identity, requestLog, reach, control };
  const gateway = openGateway(start, { ...parts, inner, live, peers, runToken });
  void identity.opened.then(({ keys }) =>
    keys.onRevocation(endRevoked({ channelServer, live, relays, setTimer: setProcessTimer })),
  );
  relays.begin(channelServer);
  pulls.jobs.resume();
  await listen(start, listener, gateway);
  await writeRunFile(start.home, {
    pid: process.pid,
    host: '127.0.0.1',
    port: listener.place().port,
    token: runToken,
    startedAtMs,
  });
  void identity.begin().finally(() => setBusyTimeout(kept.database, BUSY_TIMEOUT_MS.ofService));
  await advertise(start, { identity, facts, listener });
  return { ...kept, ...approval, ...models, requestLog, identity, listener, channelServer, relays, peers };
}

async function within(ms: number, done: Promise<void>, now: AbortSignal): Promise<void> {
  const over = new AbortController();
  const timeout = sleep(ms, undefined, { signal: AbortSignal.any([over.signal, now]) }).catch(() => undefined);
  await Promise.race([done, timeout]);
  over.abort();
}
