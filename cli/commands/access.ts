/** `postern access`: says who may call what, by the very function that decides it. */
import { readSettings, type Settings } from '../../service/settings.ts';
import { builtInAgentOnly, namedAgent } from '../../gateway/agent-directory.ts';
import { callerOf, type Caller, type Proof } from '../../gateway/caller.ts';
import { refusalError, outwardError } from '../../gateway/errors.ts';
import { findTarget } from '../../gateway/find-target.ts';
import { provenanceOf, type Host } from '../../gateway/guard.ts';
import { openPeerProcesses } from '../../gateway/open-peer-processes.ts';
import type { PeerProcess } from '../../gateway/peer-process.ts';
import { decide, type Verdict } from '../../gateway/policy.ts';
import type { Target } from '../../gateway/pipeline/router.ts';
import { METHODS } from '../../gateway/route.ts';
import { findAccessKey } from '../../identity/access-key.ts';
import type { AccessKeyRefusal } from '../../identity/node/access-key-check.ts';
import { machineNames } from '../../service/addresses.ts';
import { noun, refuseMore } from '../actions.ts';
import {
  CommandError,
  UsageError,
  type Command,
  type CommandContext,
  type CommandInput,
  type ExitCode,
} from '../command.ts';
import { readKey, REFUSALS } from './keys.ts';
import { verifyHere } from '../key-admin.ts';

export const access: Command = noun({
  name: 'access',
  summary: 'say who may call what',
  usage: `Usage: postern access explain --route "METHOD /path" --from loopback|lan|relay [--process own|other] [--host NAME]
                              [--sealed] [--key -] [--json]

Says whether such a request would be let in, and if not, why. It is answered by the function that decides in the server.

  --route     as a client would write it: "POST /v1/chat/completions"
  --from      where from: this machine, another one on the network, or through the relay
  --process   on this machine, whose program asks: one of the service's own user (default), or any other, such as a
              proxy's
  --host      on this machine, the name in its Host header (default 127.0.0.1)
  --sealed    inside a call of the encrypted channel; without a key, by a device that is paired for every agent
  --key -     with an access key, read from standard input
  --json      one JSON object on stdout

Example:
  postern access explain --route "POST /v1/agents/default/run" --from lan --key - < laptop.key
`,
  options: {
    route: { type: 'string' },
    from: { type: 'string' },
    process: { type: 'string' },
    host: { type: 'string' },
    sealed: { type: 'boolean' },
    key: { type: 'string' },
    json: { type: 'boolean' },
  },
  actions: {
    explain: { options: ['route', 'from', 'process', 'host', 'sealed', 'key', 'json'], run: explain },
  },
});

async function explain({ flags, positionals }: CommandInput, context: CommandContext): Promise<ExitCode> {
  refuseMore(positionals);
  const { route, params, asked } = targetOf(flags['route']);
  const from = transportOf(flags['from']);
  const isSealed = flags['sealed'] === true;
  const { settings } = await readSettings(context);
  const local = from === 'loopback' && !isSealed ? await locate(flags, settings) : undefined;
  const shown = flags['key'] === undefined ? undefined : await look(flags['key'], isSealed, context);
  const transport = local?.isLoopback === false ? 'lan' : from;
  const caller = callerFor({ transport, sealed: isSealed }, shown, settings['access.requireKeyOnLoopback']);
  const host = local?.host ?? 'own';
  const agent = namedAgent(route, params, builtInAgentOnly);
  const verdict = decide(route.access, { caller, site: 'none', host, hasRunToken: false, agent });
  const where = { process: local?.process ?? null, host: local?.host ?? null };
  const explained = { route: asked, class: route.access, ...where, caller, key: keyText(shown), ...outcome(verdict) };
  if (flags['json'] === true) context.terminal.print(JSON.stringify(explained));
  else print(explained, context);
  return 0;
}

function targetOf(flag: CommandInput['flags'][string]): Target & { readonly asked: string } {
  const [, verb = '', path = ''] = /^([A-Z]+) +(\/\S*)$/.exec(typeof flag === 'string' ? flag : '') ?? [];
  const method = METHODS.find((one) => one === verb);
  if (method === undefined) throw new UsageError('--route: expected a method and a path, such as "GET /v1/models".');
  const target = findTarget(method, path);
  if (target === undefined) throw new CommandError(`there is no ${method} ${path}. /openapi.json lists what there is.`);
  return { ...target, asked: `${method} ${path}` };
}

function transportOf(flag: CommandInput['flags'][string]): Caller['transport'] {
  if (flag === 'loopback' || flag === 'lan' || flag === 'relay') return flag;
  throw new UsageError('--from: expected loopback, lan or relay.');
}

interface Local {
  readonly isLoopback: boolean;
  readonly process: PeerProcess['kind'];
  readonly host: Host;
}

/** A request from this machine, as the server would provenanceOf it. */
async function locate(flags: CommandInput['flags'], settings: Settings): Promise<Local> {
  const { process: whose = 'own', host: name = '127.0.0.1' } = flags;
  if (whose !== 'own' && whose !== 'other') throw new UsageError('--process: expected own or other.');
  const peer: PeerProcess = { kind: (await openPeerProcesses()).areTold ? whose : 'untold' };
  const { isLoopback, host } = provenanceOf(
    { peerAddress: '127.0.0.1', peer, headers: { host: String(name) } },
    { hostnames: settings['server.hostnames'], allowedOrigins: [], machineNames },
  );
  return { isLoopback, host, process: peer.kind };
}

/** What a key is good for, or why it is good for nothing. */
type Shown = Exclude<Proof, string> | AccessKeyRefusal;

async function look(flag: CommandInput['flags'][string], isSealed: boolean, context: CommandContext): Promise<Shown> {
  const token = await readKey([String(flag)], context);
  const claims = findAccessKey(token)?.claims;
  if (claims === undefined) return 'malformed';
  const verdict = await verifyHere(context, token);
  // Its device alone can make such a call with it.
  const isOfDevice = !verdict.counts && verdict.refusal === 'device_bound' && isSealed;
  return verdict.counts || isOfDevice ? { scope: claims.scope, keyId: claims.kid } : verdict.refusal;
}

function callerFor(
  where: Pick<Caller, 'transport' | 'sealed'>,
  shown: Shown | undefined,
  isKeyRequired: boolean,
): Caller {
  const isOpen = where.transport === 'loopback' && !where.sealed && !isKeyRequired;
  if (isOpen) return callerOf(where, 'owner');
  if (typeof shown === 'object') return callerOf(where, shown);
  if (where.sealed && shown === undefined) return { ...where, credential: 'device', scope: 'master' };
  return callerOf(where, 'nothing');
}

function keyText(shown: Shown | undefined): string | null {
  if (shown === undefined) return null;
  return typeof shown === 'string' ? shown : shown.keyId;
}

interface Outcome {
  readonly allowed: boolean;
  readonly view: 'full' | 'summary' | null;
  readonly refusal: string | null;
  readonly status: number | null;
}

function outcome(verdict: Verdict): Outcome {
  if (verdict.allowed) return { allowed: true, view: verdict.view, refusal: null, status: null };
  const { refusal } = verdict;
  return { allowed: false, view: null, refusal, status: outwardError(refusalError(refusal)).status };
}

interface Explained extends Outcome {
  readonly route: string;
  readonly class: string;
  /** Of a request from this machine. */
  readonly process: PeerProcess['kind'] | null;
  readonly host: Host | null;
  readonly caller: Caller;
  readonly key: string | null;
}

const PROCESSES: Readonly<Record<PeerProcess['kind'], string>> = {
  own: "the service's own user's",
  other: "another user's: a stranger",
  untold: 'this system does not tell whose, so it counts as yours',
};
const HOSTS: Readonly<Record<Host, string>> = {
  own: 'means this machine',
  ambiguous: 'may mean this machine: good for inference and no more',
  foreign: 'means another machine',
};

function print(explained: Explained, { terminal }: CommandContext): void {
  const { allowed, view, refusal, status, process: whose, host, caller, key } = explained;
  const less = view === 'summary' ? ', and sees less than the owner' : '';
  terminal.print(allowed ? `allowed${less}` : `refused: ${status} ${refusal}`);
  terminal.print(`route    ${explained.route} (class ${explained.class})`);
  if (whose !== null) terminal.print(`process  ${PROCESSES[whose]}`);
  if (host !== null) terminal.print(`host     ${HOSTS[host]}`);
  terminal.print(
    `caller   ${caller.transport}${caller.sealed ? ', sealed' : ''}, ${caller.credential}, ${caller.scope}`,
  );
  if (key !== null) terminal.print(`key      ${isRefusal(key) ? `not valid: ${REFUSALS[key]}` : key}`);
}

function isRefusal(key: string): key is AccessKeyRefusal {
  return Object.hasOwn(REFUSALS, key);
}
