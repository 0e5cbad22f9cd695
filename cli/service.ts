/** The service: where everything is wired together, started, and brought to an orderly end. */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApprovalQueue, type ApprovalQueue } from '../core/approvals/approval-queue.ts';
import { writeRunFile } from '../core/config/home.ts';
import type { Settings } from '../core/config/settings.ts';
import { createLocalInference, type LocalInference } from '../core/inference/local-inference.ts';
import { createModelDetailsReader } from '../core/inference/model-details.ts';
import { createModelDigests, type ModelDigests } from '../core/inference/model-digests.ts';
import { createResponseStore } from '../core/responses/response-store.ts';
import { BUSY_TIMEOUT_MS, openDatabase, probeWrite, setBusyTimeout, type Database } from '../core/storage/database.ts';
import { findDiskFault } from '../core/storage/disk-fault.ts';
import { openDurableClock, type DurableClock } from '../core/storage/durable-clock.ts';
import { createStorageHealth, type StorageHealth } from '../core/storage/storage-health.ts';
import { setProcessTimer } from '../core/timer.ts';
import { builtInAgentOnly } from '../gateway/agent-directory.ts';
import { createApprovalFeed, type ApprovalFeed } from '../gateway/approval-feed.ts';
import type { Listener } from '../gateway/listener.ts';
import { routeBodyBytes } from '../gateway/find-target.ts';
import { withLateStreams } from '../gateway/late-streams.ts';
import { createLiveRequests } from '../gateway/live-requests.ts';
import { createMetrics, type Metrics } from '../gateway/metrics.ts';
import { openPeerProcesses } from '../gateway/open-peer-processes.ts';
import type { PeerProcesses } from '../gateway/peer-process.ts';
import { createRecorder, type Recorder } from '../gateway/request-log/recorder.ts';
import { createRequestLog, type RequestLog } from '../gateway/request-log/request-log.ts';
import type { Services } from '../gateway/route.ts';
import { routes } from '../gateway/routes.ts';
import { createRunToken } from '../gateway/run-token.ts';
import { lateDoor } from '../gateway/sealed/late-door.ts';
import type { DoorOptions, SealedDoor } from '../gateway/sealed/sealed-door.ts';
import { createGateway } from '../gateway/server.ts';
import { openOrCreateIdentity } from '../identity/node/open-identity.ts';
import { addressOf, listenHosts } from './addresses.ts';
import { CommandError, type CommandContext } from './command.ts';
import { checkCrypto } from './crypto-check.ts';
import { gatewayFacts } from './gateway-facts.ts';
import { identityOptions } from './identity-options.ts';
import type { Advertisement } from './mdns.ts';
import { createIdentityService, type IdentityService, type IdentityServiceOptions } from './identity-service.ts';
import { openModelCatalog } from './model-catalog.ts';
import { version } from './package.ts';
import type { RelayTunnels } from './relay-tunnels.ts';
import { endRevoked } from './revocation.ts';
import { callerOptions, inferenceOptions } from './service-options.ts';

/** How long answers under way may go on after the service was told to stop. */
const SHUTDOWN_GRACE_MS = 10_000;

/** For the streams' last events to reach their readers; one that does not read is not waited for. */
const LAST_WORDS_MS = 1000;

const NO_RELAYS: RelayTunnels = { list: () => [], changed: () => undefined, close: () => Promise.resolve() };

/** What runs, as whoever started it needs it to end it. */
export interface Running {
  readonly port: number;
  /** What is listened on. */
  readonly hosts: readonly string[];
  readonly listener: Listener;
  readonly inference: LocalInference;
  readonly modelDigests: ModelDigests;
  readonly requestLog: RequestLog;
  readonly approvals: ApprovalQueue;
  readonly approvalFeed: ApprovalFeed;
  readonly door: SealedDoor;
  readonly database: Database;
  readonly storage: StorageHealth;
  readonly durableClock: DurableClock;
  readonly identity: IdentityService;
  readonly relays: RelayTunnels;
  readonly advertisement: Advertisement | undefined;
  readonly peers: PeerProcesses;
  /** Fires when the service was asked over HTTP to stop. */
  readonly shutDown: AbortSignal;
}

/** What is the system's own, unless a test runs in a time of its own. */
export interface SystemParts {
  readonly clock?: DoorClock;
  readonly openPeers?: () => Promise<PeerProcesses>;
}

/** The clock of sealed sessions and calls. */
export type DoorClock = Pick<DoorOptions, 'now' | 'elapsed' | 'setTimer'>;

const DOOR_CLOCK: DoorClock = { now: () => Date.now(), elapsed: () => performance.now(), setTimer: setProcessTimer };

/** @throws {CommandError} where the port is not to be had */
export async function startService(
  settings: Settings,
  context: CommandContext,
  { clock = DOOR_CLOCK, openPeers = openPeerProcesses }: SystemParts = {},
): Promise<Running> {
  const startedAtMs = Date.now();
  await checkCrypto(settings['channel.crypto']);
  const { facts, place, token, ...parts } = await assemble(settings, {
    context,
    clock,
    peers: await openPeers(),
    startedAtMs,
  });
  const { listener, identity } = parts;
  const { port, hosts } = await listen(listener, settings);
  Object.assign(place, { port, hosts });
  await writeRunFile(context.home, { pid: process.pid, host: '127.0.0.1', port, token, startedAtMs });
  void identity.begin().finally(() => setBusyTimeout(parts.database, BUSY_TIMEOUT_MS.ofService));
  const advertisement = await openAdvertisement(settings, { identity, facts, port, hosts, context });
  return { ...parts, port, hosts, advertisement };
}

interface Assembling {
  readonly context: CommandContext;
  readonly clock: DoorClock;
  readonly peers: PeerProcesses;
  readonly startedAtMs: number;
}

interface Assembled extends Omit<Running, 'port' | 'hosts' | 'advertisement'> {
  readonly token: string;
  readonly facts: Services['gatewayFacts'];
  /** To be put right when it listens. */
  readonly place: Pick<Running, 'port' | 'hosts'>;
}

/** All of it, wired together; nobody can come in yet. */
async function assemble(settings: Settings, { context, clock, peers, startedAtMs }: Assembling): Promise<Assembled> {
  const { terminal } = context;
  const shutDown = new AbortController();
  const kept = openStorage(context.home, { terminal, clock });
  const { database, storage, now } = kept;
  const models = openModels(settings, { context, database });
  const requestLog = openRequestLog(settings, { database, terminal, storage });
  const metrics = createMetrics({ routes, inference: models.inference, connections: () => gateway.listener.counts() });
  const token = createRunToken();
  const live = createLiveRequests({ setTimer: setProcessTimer });
  const identity = identityService(context, {
    ...kept,
    onChange: () => relays.changed(),
    onRevocation: (kids) => endRevoked({ door, live, relays, setTimer: setProcessTimer })(kids),
  });
  const approval = openApprovals(identity, { terminal, storage });
  const place: Assembled['place'] = { port: settings['server.port'], hosts: [] };
  const facts: Services['gatewayFacts'] = (key) => gatewayFacts(key, { ...place, relays: relays.list() });
  const door = openDoor(settings, {
    ...clock,
    ...kept,
    identity,
    approvals: approval.approvals,
    gatewayFacts: facts,
    run: (request, caller) => gateway.runInner(request, caller),
    say: (words) => terminal.say(words),
  });
  const relays = await openRelays(settings, { identity, database, door, now, context });
  const gateway = createGateway({
    routes,
    services: {
      ...models,
      inference: withLateStreams(models.inference, clock.setTimer),
      responses: createResponseStore({ database, now }),
      keys: identity,
      gatewayFacts: facts,
      appOrigin: settings['pairing.appOrigin'] ?? undefined,
      requestLog,
      ...approval,
      door,
      relays,
      metrics,
      now,
      storage,
      control: { version, startedAtMs, connections: () => gateway.listener.counts(), shutDown: () => shutDown.abort() },
    },
    ...callerOptions(settings),
    peers,
    live,
    agents: builtInAgentOnly,
    onRefusal: (reason) => identity.refusals.note(reason),
    onError: (error) => storage.note(error),
    runToken: token,
    recorder: openRecorder(settings, { requestLog, metrics }),
    warn: (message, details) => terminal.say(`${message}: ${JSON.stringify(details)}`),
  });
  const parts = { ...kept, requestLog, identity, ...approval, door, relays, peers };
  return { listener: gateway.listener, ...models, ...parts, facts, place, token, shutDown: shutDown.signal };
}

interface OpenStorage extends Pick<Running, 'database' | 'storage' | 'durableClock'> {
  /** The time by which things expire, in milliseconds since 1970. */
  readonly now: () => number;
}

/** Where things are kept, whether they can be at the moment, and the time by which they expire. */
function openStorage(
  home: string,
  { terminal, clock }: Pick<CommandContext, 'terminal'> & { readonly clock: DoorClock },
): OpenStorage {
  const database = openDatabase(home);
  const storage = createStorageHealth({
    ...clock,
    probe: () => probeWrite(database),
    say: (words) => terminal.say(words),
  });
  const durableClock = openDurableClock({ ...clock, database, onError: (error) => storage.note(error) });
  return { database, storage, durableClock, now: () => durableClock.now() };
}

interface Advertising {
  readonly identity: Pick<IdentityService, 'opened'>;
  readonly facts: Services['gatewayFacts'];
  readonly port: number;
  readonly hosts: readonly string[];
  readonly context: CommandContext;
}

/** Only where somebody could come who hears of it. */
async function openAdvertisement(
  settings: Settings,
  { identity, facts, port, hosts, context: { terminal } }: Advertising,
): Promise<Advertisement | undefined> {
  if (!settings['server.expose'] || !settings['pairing.discovery'] || !settings['pairing.advertise']) return undefined;
  const { advertise } = await import('./mdns.ts');
  const what = identity.opened.then(({ pairings }) => {
    const { gatewayName: name, gatewayId } = facts(pairings.gatewayKey());
    return { name, port, gatewayId, hasIPv6: hosts.includes('::') };
  });
  return advertise(what, () => terminal.say('Devices in the network cannot find this service by themselves (mDNS).'));
}

/** The models there are, and what answers with them. */
function openModels(
  settings: Settings,
  { context: { environment, terminal }, database }: { readonly context: CommandContext; readonly database: Database },
): Pick<Services, 'catalog' | 'modelDetails'> & Pick<Running, 'inference' | 'modelDigests'> {
  const catalog = openModelCatalog(settings, environment);
  const modelDetails = createModelDetailsReader({ database });
  const inference = createLocalInference({
    ...inferenceOptions(settings),
    catalog,
    memoryFacts: async (model) => (await modelDetails.read(model))?.memory,
    onRunnerDeath: (message) => terminal.say(message),
  });
  return { catalog, modelDetails, inference, modelDigests: createModelDigests({ database }) };
}

interface DoorParts extends DoorClock, Pick<DoorOptions, 'database' | 'approvals' | 'gatewayFacts' | 'run'> {
  readonly identity: IdentityService;
  readonly storage: StorageHealth;
  readonly say: (words: string) => void;
}

function openDoor(settings: Settings, { identity, say, storage, ...parts }: DoorParts): SealedDoor {
  return lateDoor(async () => {
    const [{ createSealedDoor }, { gatewayCrypto }] = await Promise.all([
      import('../gateway/sealed/sealed-door.ts'),
      import('../channel/node/crypto.ts'),
    ]);
    return createSealedDoor({
      ...parts,
      openPairings: () => identity.openPairings(),
      crypto: () => gatewayCrypto(settings['channel.crypto']),
      codePairing: {
        isOffered: settings['pairing.discovery'],
        agentIndex: settings['pairing.defaultAgent'] ?? undefined,
      },
      maxBodyBytes: (method, path) => routeBodyBytes(method, path),
      tickMs: settings['channel.streamTickMs'],
      onError(error) {
        storage.note(error);
        if (findDiskFault(error) === undefined) say('A sealed call has failed inside the service.');
      },
    });
  });
}

/** Loaded where there are any. */
async function openRelays(
  settings: Settings,
  parts: Pick<Running, 'identity' | 'database' | 'door'> & {
    readonly now: () => number;
    readonly context: CommandContext;
  },
): Promise<RelayTunnels> {
  const { identity, database, door, now, context } = parts;
  if (settings['relay.urls'].length === 0) return NO_RELAYS;
  const { createRelayTunnels } = await import('./relay-tunnels.ts');
  return createRelayTunnels({
    origins: settings['relay.urls'],
    opened: identity.opened,
    database,
    door,
    environment: context.environment,
    say: (words) => context.terminal.say(words),
    now,
    setTimer: setProcessTimer,
    random: Math.random,
  });
}

function openApprovals(
  { audit }: IdentityService,
  { terminal, storage }: Pick<CommandContext, 'terminal'> & { readonly storage: StorageHealth },
): Pick<Running, 'approvals' | 'approvalFeed'> {
  const approvals = createApprovalQueue({
    now: Date.now,
    setTimer: setProcessTimer,
    newId: () => randomBytes(8).toString('hex'),
    record: ({ id, kind }, outcome) => audit.append({ kind: 'approval_settled', id, approvalKind: kind, outcome }),
    onError(error) {
      storage.note(error);
      terminal.say('An approval that was denied or expired could not be written to the audit log.');
    },
  });
  return { approvals, approvalFeed: createApprovalFeed(approvals) };
}

function identityService(
  context: CommandContext,
  wiring: Pick<IdentityServiceOptions, 'database' | 'now' | 'storage' | 'onChange' | 'onRevocation'>,
): IdentityService {
  return createIdentityService({
    openIdentity: async () => openOrCreateIdentity(await identityOptions(context)),
    ...wiring,
    say: (words) => context.terminal.say(words),
    elapsed: () => performance.now(),
  });
}

function openRequestLog(
  settings: Settings,
  { database, terminal, storage }: Pick<CommandContext, 'terminal'> & Pick<Running, 'database' | 'storage'>,
): RequestLog {
  return createRequestLog({
    database,
    now: Date.now,
    keepDays: settings['log.days'],
    onFailure(message, error) {
      terminal.say(message);
      storage.note(error);
    },
  });
}

function openRecorder(
  settings: Settings,
  { requestLog, metrics }: { readonly requestLog: RequestLog; readonly metrics: Metrics },
): Recorder {
  return createRecorder({
    now: Date.now,
    elapsed: () => performance.now(),
    keepBodies: settings['log.bodies'],
    onEntry(entry, { isPoll }) {
      // One each second, of the command line or a monitor, would bury what its owner looks for.
      if (!isPoll) requestLog.write(entry);
      metrics.observe(entry);
    },
  });
}

async function listen(listener: Listener, settings: Settings): Promise<Pick<Running, 'port' | 'hosts'>> {
  const port = settings['server.port'];
  try {
    return await listener.listen({ hosts: listenHosts(settings['server.expose']), port });
  } catch (error) {
    throw listenError(error, port);
  }
}

function listenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE')
    return new CommandError(
      `port ${port} is in use at ${addressOf(error)}. Choose another one: --port N, or SVC_PORT.`,
    );
  if (code === 'EACCES')
    return new CommandError(`port ${port} may not be used by this user. Choose one above 1023: --port N.`);
  return error;
}

/** Answers under way may finish; those that take too long are told in their own stream why they end. */
export async function endService(running: Running, now: AbortSignal): Promise<void> {
  const { listener, inference, modelDigests, requestLog, approvals, approvalFeed, door, database, identity, relays } =
    running;
  const unadvertised = running.advertisement?.stop();
  const grace = new AbortController();
  const closed = listener.close().finally(() => grace.abort());
  // Nobody can approve any more: the door is shut.
  approvals.close();
  approvalFeed.close();
  const patience = AbortSignal.any([grace.signal, now]);
  await sleep(SHUTDOWN_GRACE_MS, undefined, { signal: patience }).catch(() => undefined);
  await Promise.all([inference.close(), door.close()]);
  await relays.close();
  await Promise.race([closed, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
  listener.cut();
  await Promise.all([closed, unadvertised]);
  await identity.close();
  modelDigests.close();
  // Nobody waits any more.
  setBusyTimeout(database, BUSY_TIMEOUT_MS.ofCommand);
  requestLog.close();
  running.durableClock.close();
  running.storage.close();
  database.close();
}
