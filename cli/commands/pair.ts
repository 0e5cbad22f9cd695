/** `postern pair`: makes this machine a device of a gateway elsewhere. */
import {
  describeInvite,
  pair as redeem,
  PosternError,
  type InviteDescription,
  type PairedDevice,
} from '../../clients/sdk/index.ts';
import { relayOfInvite } from '../../clients/sdk/relay.ts';
import { CommandError, UsageError, type Command, type CommandContext, type ExitCode } from '../command.ts';
import { confirm } from '../confirm.ts';
import { localMinute } from '../local-time.ts';
import { version } from '../../service/package.ts';
import { pairWithCode } from '../pair-with-code.ts';
import { listPairedGateways, openPairingStorage } from '../paired-gateways.ts';
import { relaySocket } from '../relay-socket.ts';
import { nameOf, report } from '../this-device.ts';

export const pair: Command = {
  name: 'pair',
  summary: 'make this machine a device of a gateway elsewhere',
  usage: `Usage: postern pair - [--name TEXT] [--yes] [--json]
       postern pair --discover [URL] [--name TEXT] [--json]

Reads an invite from standard input, or asks for it: the text "SVC:…" that "postern invite" prints at home. Shows whose
it is before anything is sent, and asks on a terminal; in a pipe, no confirmation is asked. The keys that come of it are kept
where this machine keeps secrets.

With --discover no invite is needed: lists the gateways in this network, or asks the one at URL. The one you choose shows
six digits ("postern approvals" there); type them here, or give them on standard input, a line for each try.

  --discover    pair by a code, with a gateway in the same network
  --name TEXT   what this machine is called at home (default: its host name)
  --yes         don't ask
  --json        one JSON object on stdout

Example:
  postern pair - < invite.txt
  postern pair --discover
`,
  options: {
    discover: { type: 'boolean' },
    name: { type: 'string' },
    yes: { type: 'boolean' },
    json: { type: 'boolean' },
  },
  async run({ flags, positionals }, context) {
    if (flags['discover'] === true) return pairWithCode({ flags, positionals }, context);
    requireStandardInput(positionals);
    const name = nameOf(flags['name']);
    const { terminal, stop } = context;
    const pasted = await terminal.read('The invite, in one line (SVC:…):');
    if (stop.aborted) return notPaired(context);
    const invite = readInvite(pasted);
    showInvite(invite, context);
    const isSure = flags['yes'] === true || terminal.ask === undefined;
    if (!(await confirm({ question: 'Is this your gateway?', isSure }, terminal))) return notPaired(context);
    const before = await listPairedGateways(context.home);
    const device = await redeemHere(invite, name, context);
    if (device === undefined) return notPaired(context);
    report(device, before, flags['json'] === true, context);
    return 0;
  },
};

/** Never quoted: it could be an invite. */
function requireStandardInput(positionals: readonly string[]): void {
  if (positionals.length === 1 && positionals[0] === '-') return;
  throw new UsageError(
    positionals.length === 0
      ? 'say "pair -", and give the invite on standard input.'
      : 'an invite comes from standard input ("pair -"), never from the command line, where every program of this ' +
          'machine can read it. If this was one, make another at home.',
  );
}

/** @throws {CommandError} for one that nothing can come of */
function readInvite(pasted: string): InviteDescription {
  const invite = explained(() => describeInvite(pasted.trim()));
  if (invite.isOver) {
    throw new CommandError(
      `this invite is over since ${localMinute(invite.expiresAtMs)}. Make a new one at home: "postern invite". ` +
        "If it should be good still, look at this machine's clock.",
    );
  }
  if (invite.urls.length > 0 || invite.relayOrigin !== undefined) return invite;
  throw new CommandError(
    'this invite names no way home. Start the service there with --expose or with a relay (the setting relay.urls), ' +
      'and make a new one: "postern invite".',
  );
}

function explained<Result>(act: () => Result): Result {
  try {
    return act();
  } catch (error) {
    throw error instanceof PosternError ? new CommandError(error.message) : error;
  }
}

function showInvite(invite: InviteDescription, { terminal }: CommandContext): void {
  terminal.say(
    [
      `Gateway    ${invite.gatewayId}`,
      ...invite.urls.map((url, at) => `${at === 0 ? 'Addresses' : '         '}  ${url}`),
      ...(invite.relayOrigin === undefined ? [] : [`Relay      ${invite.relayOrigin}`]),
      `Good until ${localMinute(invite.expiresAtMs)}, ${invite.isForOneAgent ? 'for one agent' : 'for every agent'}`,
      'Compare this fingerprint with the one that "postern invite" shows at home.',
    ].join('\n'),
  );
}

/** `undefined` if the user ended it. */
async function redeemHere(
  invite: InviteDescription,
  name: string,
  context: CommandContext,
): Promise<PairedDevice | undefined> {
  const { terminal, stop } = context;
  const { description, storage } = await openPairingStorage(context, invite.expiresAtMs);
  terminal.say(description);
  if (invite.needsApproval) {
    terminal.say('The owner at home has to say yes: "postern approvals" there. Waiting ... (Ctrl-C ends it)');
  }
  try {
    const device = { name, platform: process.platform };
    const transports = relayOfInvite(invite.code, { webSocket: relaySocket(context.environment) });
    const clientVersion = `postern/${version}`;
    return await redeem(invite.code, { device, storage, signal: stop, clientVersion, transports });
  } catch (error) {
    if (stop.aborted) return undefined;
    throw error instanceof PosternError ? new CommandError(error.message) : error;
  }
}

function notPaired({ terminal }: CommandContext): ExitCode {
  terminal.say('Not paired. As long as the invite is good, "postern pair -" takes it again.');
  return 1;
}
