/** `postern connect`: serves on this machine what a gateway serves that it is paired with. */
import { startConnectServer, type ConnectServer } from '../../clients/connect/connect-server.ts';
import { watchHome } from '../../clients/connect/home-watch.ts';
import { watchPath } from '../../clients/connect/path-watch.ts';
import { PosternError, type PosternClient } from '../../clients/sdk/index.ts';
import { setProcessTimer } from '../../core/timer.ts';
import { quoted } from '../../core/printable.ts';
import { isInUse } from '../../gateway/bind.ts';
import { openPeerProcesses } from '../../gateway/open-peer-processes.ts';
import { addressOf } from '../../service/addresses.ts';
import { CommandError, UsageError, type Command, type CommandContext, type CommandInput } from '../command.ts';
import { portOf, type Flag } from '../flags.ts';
import { chooseGateway } from './gateways.ts';
import { openHomeClient } from '../home-client.ts';
import { listPairedGateways, type PairedGateway } from '../paired-gateways.ts';

export const connect: Command = {
  name: 'connect',
  summary: "serve a paired gateway's API on this machine",
  usage: `Usage: postern connect [--port N] [--gateway NAME|ID] [--allow-origin ORIGIN]... [--json]

Carries what programs of this machine ask for home, through the sealed channel, until it is stopped (Ctrl-C). Nobody
else can reach it: not other machines, and no web page but those that are named.

  -p, --port N             TCP port (default 1337); 0 takes any free one
  --gateway NAME|ID        which one, if this machine is paired with several
  --allow-origin ORIGIN    let pages of this origin call (https://app.example); may be given more than once
  --json                   print one JSON object when ready: url, pid, gateway_id, gateway_name

Example:
  postern connect --port 1338
`,
  options: {
    port: { type: 'string', short: 'p' },
    gateway: { type: 'string' },
    'allow-origin': { type: 'string', multiple: true },
    json: { type: 'boolean' },
  },
  run: connectUntilStopped,
};

const DEFAULT_PORT = 1337;
/** As the service gives those under way when it is stopped. */
const ENDING_MS = 10_000;

async function connectUntilStopped({ flags, positionals }: CommandInput, context: CommandContext): Promise<0> {
  if (positionals.length > 0) throw new UsageError('"connect" takes no argument. --gateway says which one.');
  const [port, allowedOrigins] = [portOf(flags['port']) ?? DEFAULT_PORT, originsOf(flags['allow-origin'])];
  const wanted = typeof flags['gateway'] === 'string' ? flags['gateway'] : undefined;
  const gateway = chooseGateway(await listPairedGateways(context.home), wanted);
  const client = await openHomeClient(gateway, context);
  try {
    await serveHome({ client, gateway, port, allowedOrigins, asJson: flags['json'] === true }, context);
  } finally {
    client.close();
  }
  context.terminal.say('Stopped.');
  return 0;
}

interface Serving {
  readonly client: PosternClient;
  readonly gateway: PairedGateway;
  readonly port: number;
  readonly allowedOrigins: readonly string[];
  readonly asJson: boolean;
}

async function serveHome(serving: Serving, context: CommandContext): Promise<void> {
  const { client, gateway, port, allowedOrigins } = serving;
  const { terminal, stop, stopNow } = context;
  const say = (words: string): void => terminal.say(words);
  const tellPath = watchPath(say);
  const watch = watchHome({
    async probe(signal) {
      await askHome(client, signal);
      tellPath(client.path);
    },
    say,
    setTimer: setProcessTimer,
  });
  const peers = await openPeerProcesses();
  const listener = await listening(port, () =>
    startConnectServer({
      port,
      async fetch(...request) {
        const answer = await client.fetch(...request);
        tellPath(client.path);
        return answer;
      },
      gatewayName: gateway.gatewayName,
      allowedOrigins,
      peers,
      setTimer: setProcessTimer,
      onOutcome(error) {
        watch.note(error);
        tellPath(client.path);
        if (error !== undefined && !(error instanceof PosternError)) sayFault(error, context);
      },
    }),
  );
  report(listener.port, serving, context);
  if (!peers.areTold) say(UNTOLD_PEERS);
  watch.begin();
  await aborted(stop);
  watch.end();
  terminal.say('Stopping ...');
  await closeInTime(listener, stopNow);
}

const UNTOLD_PEERS =
  "This system does not tell whose process a connection comes from: other users' programs here can use it as well.";

/** The message could quote what was asked for. */
function sayFault(error: unknown, { terminal }: CommandContext): void {
  const name = error instanceof Error ? error.name : typeof error;
  terminal.say(`postern: a request could not be carried (${name}). This is a fault of Postern's own.`);
}

async function askHome({ fetch }: PosternClient, signal: AbortSignal): Promise<void> {
  await (await fetch('/health', { signal })).arrayBuffer();
}

async function listening(port: number, listen: () => Promise<ConnectServer>): Promise<ConnectServer> {
  try {
    return await listen();
  } catch (error) {
    if (isInUse(error)) {
      throw new CommandError(
        `port ${port} is taken at ${addressOf(error)}: a service or another "postern connect" runs there. Take another one: ` +
          `"postern connect --port ${port === 65_535 ? DEFAULT_PORT + 1 : port + 1}".`,
      );
    }
    if (!(error instanceof Error) || !('code' in error) || error.code !== 'EACCES') throw error;
    throw new CommandError(`port ${port} may not be used by this user. Take one from 1024 up: --port.`);
  }
}

async function closeInTime(listener: ConnectServer, stopNow: AbortSignal): Promise<void> {
  const closed = listener.close();
  await Promise.race([closed, aborted(AbortSignal.any([stopNow, AbortSignal.timeout(ENDING_MS)]))]);
  listener.cut();
  await closed;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}

function report(port: number, { gateway, asJson }: Serving, { terminal }: CommandContext): void {
  const url = `http://127.0.0.1:${port}`;
  const { gatewayId, gatewayName } = gateway;
  if (asJson) {
    const ready = { url, pid: process.pid, gateway_id: gatewayId, gateway_name: gatewayName };
    return terminal.print(JSON.stringify(ready));
  }
  terminal.say(`${quoted(gatewayName)} (${gatewayId}) is here: ${url}

For clients that take their address from the environment:
  export OPENAI_BASE_URL=${url}/v1 OPENAI_API_KEY=any
  export ANTHROPIC_BASE_URL=${url} ANTHROPIC_API_KEY=any
  export OLLAMA_HOST=${url}
`);
}

function originsOf(flag: Flag): readonly string[] {
  const given = Array.isArray(flag) ? flag.map(String) : [];
  const other = given.find((text) => originOf(text) === undefined);
  if (other === undefined) return given.flatMap((text) => originOf(text) ?? []);
  throw new UsageError(`--allow-origin: "${other}" is no origin such as https://app.example. Each is named by itself.`);
}

function originOf(text: string): string | undefined {
  if (!URL.canParse(text)) return undefined;
  const { origin } = new URL(text);
  return origin === text.toLowerCase() && origin !== 'null' ? origin : undefined;
}
