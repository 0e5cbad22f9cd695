/** `postern serve`: settings, the lock on the home, and words for whoever started it. */
import { existsSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { lockHome, readRunFile, removeRunFile } from '../../core/config/home.ts';
import { readSettings as readAllSettings, type Settings } from '../../service/settings.ts';
import { trustClock } from '../../storage/durable-clock.ts';
import { setProcessTimer } from '../../core/timer.ts';
import { reachableUrls } from '../../service/addresses.ts';
import { CommandError, UsageError, type Command, type CommandContext, type CommandInput } from '../command.ts';
import { clockLagText } from '../clock-lag.ts';
import { portOf } from '../flags.ts';
import { followRequests } from '../follow-requests.ts';
import { listHere, withDatabase } from '../key-admin.ts';
import { REQUEST_HEADS, requestLine } from '../request-line.ts';
import { requireOpenFiles } from '../../service/open-files.ts';
import { version } from '../../service/package.ts';
import { startService, type Service } from '../../service/service.ts';
import { UNTOLD_PEERS, UNTOLD_PEERS_REMEDY } from '../untold-peers.ts';

export const serve: Command = {
  name: 'serve',
  summary: 'start the service',
  usage: `Usage: postern serve [--port N] [--expose] [--relay URL]... [--models-dir DIR] [--verbose] [--json]

Serves until it is stopped (Ctrl-C, or "postern stop" from another terminal).

  -p, --port N        TCP port (default 1337, or $SVC_PORT); 0 takes any free one
  --expose            listen on all interfaces; callers from other machines then need an access key
  --relay URL         let paired devices, and nobody else, in through this relay from anywhere (wss://relay.example.com,
                      or $SVC_RELAY); may be given more than once
  --models-dir DIR    where model files (*.gguf) are (default ~/MLXModels, or $SVC_MODELS_DIR)
  --trust-clock       forget the latest time that was seen, because this machine's clock was ahead then and is right now
  --verbose           print each request as it is answered: a line on a screen, JSON in a pipe
  --json              print one JSON object when ready: url, pid, home

Everything that is kept lies in $SVC_HOME (default ~/.service). "postern settings list" shows what else can be set.

Example:
  postern serve --relay wss://relay.example.com
`,
  options: {
    port: { type: 'string', short: 'p' },
    expose: { type: 'boolean' },
    relay: { type: 'string', multiple: true },
    'models-dir': { type: 'string' },
    'trust-clock': { type: 'boolean' },
    verbose: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  run: serveUntilStopped,
};

/** After the start, when the next one's time may be saved without taking this one's. */
const SETTLED_MS = 1000;

async function serveUntilStopped(input: CommandInput, context: CommandContext): Promise<0> {
  const { home, terminal } = context;
  requireOpenFiles();
  const readSettings = (): Promise<Settings> => settingsFor(input, context);
  const settings = await readSettings();
  const lock = lockHome(home);
  if (lock === undefined) throw await alreadyServing(home);
  try {
    if (input.flags['trust-clock'] === true) withDatabase(home, (database) => trustClock(database, Date.now()));
    const running = await startService(settings, {
      ...context,
      readSettings,
      say: (words) => terminal.say(words),
    });
    sayClockLag(running, context);
    report(running, settings, input.flags['json'] === true, context);
    if (!running.peers.areTold)
      terminal.say(`postern: ${UNTOLD_PEERS}, proxies and other users' programs too. ${UNTOLD_PEERS_REMEDY}`);
    if (settings['server.expose']) sayExposed(running, settings, context);
    sayRelays(settings['relay.urls'], context);
    if (settings['server.allowedOrigins'].includes('*')) sayOpenToPages(context);
    // What was compiled would be kept by an orderly end alone.
    setProcessTimer(SETTLED_MS, flushCompileCache);
    const ending = AbortSignal.any([context.stop, running.shutDown]);
    if (input.flags['verbose'] === true) await showRequests(running, ending, context);
    await aborted(ending);
    terminal.say('Stopping ...');
    await running.stop(context.stopNow);
    await removeRunFile(home);
  } finally {
    lock.release();
  }
  terminal.say('Stopped.');
  return 0;
}

async function settingsFor({ flags, positionals }: CommandInput, context: CommandContext): Promise<Settings> {
  if (positionals.length > 0) throw new UsageError(`"serve" takes no argument "${positionals.join(' ')}".`);
  const port = portOf(flags['port']);
  const { settings } = await readAllSettings(context, {
    ...(port === undefined ? {} : { 'server.port': port }),
    ...(flags['expose'] === undefined ? {} : { 'server.expose': flags['expose'] }),
    ...(flags['relay'] === undefined ? {} : { 'relay.urls': flags['relay'] }),
    ...(flags['models-dir'] === undefined ? {} : { 'models.folder': flags['models-dir'] }),
  });
  return settings;
}

function sayClockLag({ database }: Service, { terminal }: CommandContext): void {
  const lag = clockLagText(database, Date.now());
  if (lag !== undefined) terminal.say(`postern: ${lag.message}. ${lag.remedy}`);
}

async function alreadyServing(home: string): Promise<CommandError> {
  const run = await readRunFile(home);
  const where = run === undefined ? '' : ` on http://${run.host}:${run.port} (pid ${run.pid})`;
  return new CommandError(
    `the service runs already${where}. "postern stop" stops it; another SVC_HOME keeps two apart.`,
  );
}

function report({ port }: Service, settings: Settings, asJson: boolean, context: CommandContext): void {
  const { terminal, home, environment } = context;
  const url = `http://127.0.0.1:${port}`;
  if (asJson) return terminal.print(JSON.stringify({ url, pid: process.pid, home, version }));
  terminal.say(`Postern ${version} serves on ${url}`);
  const discovered = settings['models.discover'] ? ', those of LM Studio and Ollama' : '';
  const folder = settings['models.folder'];
  terminal.say(
    `Models: *.gguf in ${folder}${discovered}, and "foundation", a tiny built-in one that only shows how things work.`,
  );
  if (!existsSync(folder)) terminal.say(`${folder} does not exist yet: "postern models pull" makes it, or mkdir -p.`);
  terminal.say(sampleText(url, environment['POSTERN_COMMAND'] ?? 'postern'));
}

/** Something to try at once. @param command how the program was called */
function sampleText(url: string, command: string): string {
  const body = { model: 'foundation', messages: [{ role: 'user', content: 'Hello' }] };
  return `Try it: ${command} chat, or\n  curl ${url}/v1/chat/completions -d '${JSON.stringify(body)}'`;
}

function sayExposed(
  { port, hosts }: Service,
  settings: Settings,
  { terminal, home }: Pick<CommandContext, 'terminal' | 'home'>,
): void {
  const urls = reachableUrls({ port, hosts });
  if (!hosts.includes('::')) terminal.say('This machine has no IPv6: only IPv4 is served.');
  const where =
    urls.length === 0 ? 'This machine has no network address now.' : `Other machines reach it at ${urls.join(', ')}`;
  terminal.say(`${where}\nThey are refused without an access key.`);
  const hasKey = listHere(home).some(({ status }) => status === 'active');
  if (!hasKey)
    terminal.say('There is none yet: "postern invite" pairs a device, "postern keys create" makes a plain one.');
  if (settings['pairing.discovery'])
    terminal.say(
      'To pair one without an invite: "postern pair --discover" there; "postern approvals" here shows its code.',
    );
}

function sayOpenToPages({ terminal }: Pick<CommandContext, 'terminal'>): void {
  terminal.say(
    `Any web page in a browser here may use models, as a guest: postern settings set server.allowedOrigins '[]' closes that.`,
  );
}

function sayRelays(origins: readonly string[], { terminal }: Pick<CommandContext, 'terminal'>): void {
  if (origins.length === 0) return;
  terminal.say(
    `Paired devices reach it from anywhere through ${origins.join(', ')}. "postern relay status" says how it is.`,
  );
  const open = origins.filter((origin) => /^ws:\/\/(?!localhost\b|127\.|\[::1\])/.test(origin));
  if (open.length > 0)
    terminal.say(`On the way to ${open.join(', ')} the network sees as much as the relay does: wss:// hides that.`);
}

/** Until it ends. */
async function showRequests({ requestLog }: Service, stop: AbortSignal, { terminal }: CommandContext): Promise<void> {
  if (terminal.isInteractive) terminal.print(REQUEST_HEADS);
  const print = terminal.isInteractive ? requestLine : JSON.stringify;
  await followRequests(requestLog, {
    filter: {},
    from: requestLog.lastId(),
    print: (requests) => requests.forEach((request) => terminal.print(print(request))),
    stop,
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
