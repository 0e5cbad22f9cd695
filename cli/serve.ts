/** `postern serve`: where everything is wired together, started, and brought to an orderly end. */
import { setTimeout as sleep } from 'node:timers/promises';
import { lockHome, readRunFile, removeRunFile, writeRunFile } from '../core/config/home.ts';
import { readSettingsFile, resolveSettings, type Settings } from '../core/config/settings.ts';
import { createLocalInference, type LocalInference } from '../core/inference/local-inference.ts';
import { createModelDetailsReader } from '../core/inference/model-details.ts';
import { createModelDigests, type ModelDigests } from '../core/inference/model-digests.ts';
import type { SamplingDefaults } from '../core/inference/runner/protocol.ts';
import { createResponseStore } from '../core/responses/response-store.ts';
import { openDatabase, type Database } from '../core/storage/database.ts';
import type { Listener } from '../gateway/listener.ts';
import { createMetrics } from '../gateway/metrics.ts';
import { createRecorder } from '../gateway/request-log/recorder.ts';
import { createRequestLog, type RequestLog } from '../gateway/request-log/request-log.ts';
import { routes } from '../gateway/routes.ts';
import { createRunToken } from '../gateway/run-token.ts';
import { createGateway } from '../gateway/server.ts';
import { CommandError, UsageError, type Command, type CommandContext, type CommandInput } from './command.ts';
import { openModelCatalog } from './model-catalog.ts';
import { packageRoot, version } from './package.ts';

/** How long answers under way may go on after the service was told to stop. */
const SHUTDOWN_GRACE_MS = 10_000;

/** For the streams' last events to reach their readers; one that does not read is not waited for. */
const LAST_WORDS_MS = 1000;

export const serve: Command = {
  name: 'serve',
  summary: 'start the service',
  usage: `Usage: postern serve [--port N] [--expose] [--models-dir DIR] [--json]

Serves until it is stopped (Ctrl-C, or "postern stop" from another terminal).

  -p, --port N        TCP port (default 1337, or $SVC_PORT); 0 takes any free one
  --expose            listen on all interfaces; callers from other machines then need an access key
  --models-dir DIR    where model files (*.gguf) are (default ~/MLXModels, or $SVC_MODELS_DIR)
  --json              print one JSON object when ready: url, pid, home

Everything that is kept lies in $SVC_HOME (default ~/.service). "postern settings list" shows what else can be set.

Example:
  postern serve --port 4001
`,
  options: {
    port: { type: 'string', short: 'p' },
    expose: { type: 'boolean' },
    'models-dir': { type: 'string' },
    json: { type: 'boolean' },
  },
  run: serveUntilStopped,
};

async function serveUntilStopped(input: CommandInput, context: CommandContext): Promise<0> {
  const { home, terminal } = context;
  const settings = await readSettings(input, context);
  const lock = lockHome(home);
  if (lock === undefined) throw await alreadyServing(home);
  try {
    const running = await start(settings, context);
    report(running, settings, input.flags['json'] === true, context);
    await untilEither(context.stop, running.shutDown);
    terminal.say('Stopping ...');
    await end(running, context.stopNow);
    await removeRunFile(home);
  } finally {
    lock.release();
  }
  terminal.say('Stopped.');
  return 0;
}

async function readSettings(
  { flags, positionals }: CommandInput,
  { home, environment }: CommandContext,
): Promise<Settings> {
  if (positionals.length > 0) throw new UsageError(`"serve" takes no argument "${positionals.join(' ')}".`);
  const port = flags['port'];
  if (port !== undefined && !/^\d+$/.test(String(port)))
    throw new UsageError(`--port: "${String(port)}" is not a port number.`);
  return resolveSettings({
    flags: {
      ...(port === undefined ? {} : { 'server.port': Number(port) }),
      ...(flags['expose'] === undefined ? {} : { 'server.expose': flags['expose'] }),
      ...(flags['models-dir'] === undefined ? {} : { 'models.folder': flags['models-dir'] }),
    },
    environment,
    file: await readSettingsFile(home),
  }).settings;
}

interface Running {
  readonly port: number;
  readonly listener: Listener;
  readonly inference: LocalInference;
  readonly modelDigests: ModelDigests;
  readonly requestLog: RequestLog;
  readonly database: Database;
  /** Fires when the service was asked over HTTP to stop. */
  readonly shutDown: AbortSignal;
}

async function start(settings: Settings, { home, terminal, environment }: CommandContext): Promise<Running> {
  const startedAtMs = Date.now();
  const shutDown = new AbortController();
  const catalog = openModelCatalog(settings, environment);
  const database = openDatabase(home);
  const modelDetails = createModelDetailsReader({ database });
  const inference = createLocalInference({
    catalog,
    memoryFacts: async (model) => (await modelDetails.read(model))?.memory,
    runnerEntry: new URL('dist/core/inference/runner/main.js', packageRoot),
    threads: settings['inference.threads'] ?? undefined,
    contextTokens: settings['inference.contextTokens'],
    gpu: settings['inference.gpu'],
    sampling: samplingDefaults(settings),
    keepLoadedMs: keepLoadedMs(settings),
    eviction: settings['inference.evictionPolicy'],
    concurrentSessions: settings['inference.concurrentSessions'] ?? undefined,
    continuousBatching: settings['inference.continuousBatching'],
    onRunnerDeath: (message) => terminal.say(message),
  });
  const modelDigests = createModelDigests({ database });
  const requestLog = createRequestLog({
    database,
    now: Date.now,
    keepDays: settings['log.days'],
    onFailure: (message) => terminal.say(message),
  });
  const metrics = createMetrics({ inference, connections: () => listener.counts() });
  const token = createRunToken();
  const listener: Listener = await createGateway({
    routes,
    services: {
      catalog,
      inference,
      modelDetails,
      modelDigests,
      responses: createResponseStore({ database, now: Date.now }),
      requestLog,
      metrics,
      now: Date.now,
      control: { version, startedAtMs, connections: () => listener.counts(), shutDown: () => shutDown.abort() },
    },
    guard: { hostnames: settings['server.hostnames'], allowedOrigins: settings['server.allowedOrigins'] },
    runToken: token,
    recorder: createRecorder({
      now: Date.now,
      elapsed: () => performance.now(),
      keepBodies: settings['log.bodies'],
      onEntry: (entry) => {
        requestLog.write(entry);
        metrics.observe(entry);
      },
    }),
    logLevel: 'warn',
  });
  const { port } = await listen(listener, settings);
  await writeRunFile(home, { pid: process.pid, host: '127.0.0.1', port, token, startedAtMs });
  return { port, listener, inference, modelDigests, requestLog, database, shutDown: shutDown.signal };
}

function keepLoadedMs(settings: Settings): number | undefined {
  const minutes = settings['inference.keepLoadedMinutes'];
  return minutes === null ? undefined : minutes * 60_000;
}

function samplingDefaults(settings: Settings): SamplingDefaults {
  return {
    temperature: settings['sampling.temperature'] ?? undefined,
    topP: settings['sampling.topP'] ?? undefined,
    topK: settings['sampling.topK'] ?? undefined,
    minP: settings['sampling.minP'] ?? undefined,
    repetitionPenalty: settings['sampling.repetitionPenalty'] ?? undefined,
    maxTokens: settings['sampling.maxTokens'] ?? undefined,
  };
}

async function listen(listener: Listener, settings: Settings): Promise<{ readonly port: number }> {
  const port = settings['server.port'];
  try {
    if (!settings['server.expose']) return await listener.listen({ hosts: ['127.0.0.1', '::1'], port });
    return await listener.listen({ hosts: ['0.0.0.0', '::'], port });
  } catch (error) {
    throw listenError(error, port);
  }
}

function listenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE')
    return new CommandError(`port ${port} is in use. Choose another one: --port N, or SVC_PORT.`);
  if (code === 'EACCES')
    return new CommandError(`port ${port} may not be used by this user. Choose one above 1023: --port N.`);
  return error;
}

async function alreadyServing(home: string): Promise<CommandError> {
  const run = await readRunFile(home);
  const where = run === undefined ? '' : ` on http://${run.host}:${run.port} (pid ${run.pid})`;
  return new CommandError(
    `the service runs already${where}. "postern stop" stops it; another SVC_HOME keeps two apart.`,
  );
}

function report({ port }: Running, settings: Settings, asJson: boolean, { terminal, home }: CommandContext): void {
  const url = `http://127.0.0.1:${port}`;
  if (asJson) return terminal.print(JSON.stringify({ url, pid: process.pid, home, version }));
  terminal.say(`Postern ${version} serves on ${url}`);
  const discovered = settings['models.discover'] ? ', those of LM Studio and Ollama' : '';
  terminal.say(
    `Models: *.gguf in ${settings['models.folder']}${discovered}, and "foundation", a tiny built-in one that only shows how things work.`,
  );
  if (settings['server.expose'])
    terminal.say('Exposed: other machines can connect, and are refused without an access key.');
}

function untilEither(one: AbortSignal, other: AbortSignal): Promise<void> {
  const either = AbortSignal.any([one, other]);
  return new Promise((resolve) => {
    if (either.aborted) resolve();
    else either.addEventListener('abort', () => resolve(), { once: true });
  });
}

/** Answers under way may finish; those that take too long are told in their own stream why they end. */
async function end(running: Running, now: AbortSignal): Promise<void> {
  const { listener, inference, modelDigests, requestLog, database } = running;
  const grace = new AbortController();
  const closed = listener.close().finally(() => grace.abort());
  const patience = AbortSignal.any([grace.signal, now]);
  await sleep(SHUTDOWN_GRACE_MS, undefined, { signal: patience }).catch(() => undefined);
  await inference.close();
  await Promise.race([closed, sleep(LAST_WORDS_MS, undefined, { ref: false })]);
  listener.cut();
  await closed;
  modelDigests.close();
  requestLog.close();
  database.close();
}
