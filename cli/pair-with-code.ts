/** `postern pair --discover`: finds gateways in this network, and pairs with one by the digits that it shows. */
import { PosternError } from '../clients/sdk/index.ts';
import { describeGateway, pairByCode, type NearbyGateway } from '../clients/sdk/pair-by-code.ts';
import { quoted } from '../core/printable.ts';
import { CommandError, UsageError, type CommandContext, type CommandInput, type ExitCode } from './command.ts';
import { browse, type ServiceInstance } from '../service/mdns.ts';
import { version } from '../service/package.ts';
import { listPairedGateways, openPairingStorage } from './paired-gateways.ts';
import { nameOf, report } from './this-device.ts';

const LOOK_MS = 2800;
/** As long as a code can be good. */
const CODE_MS = 120_000;

export async function pairWithCode({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  const [wanted, ...more] = positionals;
  if (more.length > 0) {
    throw new UsageError('say "pair --discover", and an address if you know it. The code is asked for later.');
  }
  const name = nameOf(flags['name']);
  const asJson = flags['json'] === true;
  const url = wanted === undefined ? await choose(asJson, context) : withScheme(wanted);
  if (url === 'listed') return 0;
  if (url === undefined) return notPaired(context);
  const before = await listPairedGateways(context.home);
  const device = await pairHere(url, name, context);
  if (device === undefined) return notPaired(context);
  report(device, before, asJson, context);
  return 0;
}

function notPaired({ terminal }: CommandContext): ExitCode {
  terminal.say('Not paired. Nothing was stored.');
  return 1;
}

function withScheme(address: string): string {
  return address.includes('://') ? address : `http://${address}`;
}

/** @returns a URL; `listed` where nobody can choose, undefined where nobody wants to */
async function choose(asJson: boolean, context: CommandContext): Promise<string | undefined> {
  const { terminal, stop } = context;
  terminal.say('Looking for gateways in this network ...');
  const found = await discover(context);
  if (stop.aborted) return undefined;
  if (asJson) {
    terminal.print(JSON.stringify(found.map(({ name, url, gatewayId }) => ({ name, url, gateway_id: gatewayId }))));
    return 'listed';
  }
  if (found.length === 0) {
    throw new CommandError(
      'no gateway answers in this network. Start the service there with --expose; if it runs, give its address: ' +
        '"postern pair --discover http://ADDRESS:1337".',
    );
  }
  found.forEach((gateway, at) => terminal.print(`${at + 1}  ${shown(gateway)}`));
  if (terminal.ask === undefined) {
    terminal.say('"postern pair --discover URL" pairs with one of them.');
    return 'listed';
  }
  const answer = await terminal.ask(found.length === 1 ? 'Pair with 1? Its number, or nothing: ' : 'Pair with which? ');
  return found[Number(answer.trim()) - 1]?.url;
}

function shown({ name, url, gatewayId }: NearbyGateway): string {
  return `${quoted(name)}\n   gateway ${gatewayId}\n   ${url}`;
}

async function discover({ stop }: CommandContext): Promise<readonly NearbyGateway[]> {
  const instances = await browse(LOOK_MS, stop).catch((error: unknown) => {
    throw new CommandError('this machine cannot ask in its network (mDNS). Give the address of the gateway instead.', {
      cause: error,
    });
  });
  const met = await Promise.all(
    instances.map(async (instance) => describeGateway(urlOf(instance), { signal: stop }).catch(() => undefined)),
  );
  const byId = new Map(
    met.flatMap((gateway) => (gateway === undefined ? [] : [[gateway.gatewayId, gateway] as const])),
  );
  return [...byId.values()].toSorted((one, other) => one.url.localeCompare(other.url));
}

/** Nothing else of what it said is used. */
function urlOf({ address, port }: ServiceInstance): string {
  return `http://${address}:${port}`;
}

async function pairHere(url: string, name: string, context: CommandContext) {
  const { terminal, stop } = context;
  const { storage } = await openPairingStorage(context, Date.now() + CODE_MS);
  try {
    return await explained(
      pairByCode(url, {
        device: { name, platform: process.platform },
        storage,
        askCode: createAsker(context),
        signal: stop,
        clientVersion: `postern/${version}`,
      }),
    );
  } catch (error) {
    if (!stop.aborted) throw error;
    terminal.say('The gateway asks its owner for two minutes more, and then gives up.');
    return undefined;
  }
}

type AskCode = (tryNumber: number, gateway: NearbyGateway) => Promise<string>;

/** Asks whoever sits here; of a pipe each line is a try. */
function createAsker({ terminal, stop }: CommandContext): AskCode {
  let lines: string[] | undefined;
  const next = async (): Promise<string> => {
    if (terminal.ask !== undefined) return terminal.ask('The six digits: ');
    lines ??= (await terminal.read('')).trim().split(/\s*\n\s*/u);
    return lines.shift() ?? '';
  };
  return async (tryNumber, gateway) => {
    terminal.say(
      tryNumber === 1
        ? `${shown(gateway)}\nIt shows six digits now: "postern approvals" there. They are good for two minutes.`
        : `That was not the code. ${tryNumber === 2 ? 'Two tries are' : 'One try is'} left.`,
    );
    for (;;) {
      const code = (await next()).replaceAll(/\s/gu, '');
      if (/^\d{6}$/u.test(code)) return code;
      stop.throwIfAborted();
      if (terminal.ask === undefined) throw new CommandError('standard input has no six digits, or no more of them.');
      terminal.say('A code has six digits. This was no try.');
    }
  };
}

async function explained<Result>(promise: Promise<Result>): Promise<Result> {
  try {
    return await promise;
  } catch (error) {
    throw error instanceof PosternError ? new CommandError(error.message) : error;
  }
}
