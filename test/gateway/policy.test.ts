/** The whole truth table of the policy, made from its types, and its document, which is made from the same function. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { NamedAgent } from '../../gateway/agent-directory.ts';
import type { AgentAddress, Caller } from '../../gateway/caller.ts';
import type { Host, Site } from '../../gateway/guard.ts';
import { decide, type AccessClass, type PolicyRequest, type Refusal, type Verdict } from '../../gateway/policy.ts';

const OWN: AgentAddress = '0x1111111111111111111111111111111111111111';
const OTHER: AgentAddress = '0x2222222222222222222222222222222222222222';

/** Every member of a union: one that is missing does not compile. */
const each = <Member extends string>(all: Readonly<Record<Member, true>>) => Object.keys(all) as Member[];

const CLASSES = each<AccessClass>({
  public: true,
  channel: true,
  health: true,
  inference: true,
  tools: true,
  agents: true,
  dispatch: true,
  admin: true,
});
const SITES = each<Site>({ none: true, own: true, listed: true, app: true, any: true, foreign: true });
const HOSTS = each<Host>({ own: true, ambiguous: true, foreign: true });
const TRANSPORTS = each<Caller['transport']>({ loopback: true, lan: true, relay: true });
const CREDENTIALS = each<Caller['credential']>({ none: true, key: true, device: true });
const SCOPES = each<Exclude<Caller['scope'], AgentAddress> | typeof OWN>({
  owner: true,
  master: true,
  anonymous: true,
  [OWN]: true,
});
type AgentKind = Extract<NamedAgent, string> | Extract<NamedAgent, object>['kind'];
const AGENTS: Readonly<Record<AgentKind | 'another', NamedAgent>> = {
  none: 'none',
  unknown: 'unknown',
  'built-in': { kind: 'built-in' },
  custom: { kind: 'custom', address: OWN },
  another: { kind: 'custom', address: OTHER },
};

function* everyRequest(): Generator<PolicyRequest> {
  for (const transport of TRANSPORTS)
    for (const sealed of [false, true])
      for (const credential of CREDENTIALS)
        for (const scope of SCOPES)
          for (const site of SITES)
            for (const host of HOSTS)
              for (const hasRunToken of [false, true])
                for (const agent of Object.values(AGENTS))
                  yield { caller: { transport, sealed, credential, scope }, site, host, hasRunToken, agent };
}

type Rule = readonly [refusal: Refusal, applies: (request: PolicyRequest) => boolean];

const isNobody: Rule = ['unauthenticated', ({ caller }) => caller.scope === 'anonymous'];
const isUnlistedPage: Rule = ['cross_site', ({ site }) => ['app', 'any', 'foreign'].includes(site)];
const isAnothersName: Rule = ['foreign_host', ({ host }) => host === 'foreign'];
const isDoubtfulName: Rule = ['foreign_host', ({ host }) => host !== 'own'];
const isForOneAgent = ({ caller }: PolicyRequest) => caller.scope.startsWith('0x');
const isOutOfScope: Rule = [
  'agent_scope_denied',
  (request) => isForOneAgent(request) && request.agent !== AGENTS.none && request.agent !== AGENTS.custom,
];
const isNoAgent: Rule = ['agent_not_found', ({ agent }) => agent === 'unknown'];
const isOutside = ({ caller }: PolicyRequest) => caller.transport !== 'loopback' || caller.sealed;

/** What each class refuses, said a second time and in another way: the first rule that applies is the answer. */
const RULES: Readonly<Record<AccessClass, readonly Rule[]>> = {
  public: [isAnothersName],
  channel: [
    isDoubtfulName,
    ['forbidden', ({ caller }) => caller.sealed],
    ['cross_site', ({ site }) => site === 'any' || site === 'foreign'],
  ],
  health: [isAnothersName],
  inference: [isAnothersName, ['cross_site', ({ site }) => site === 'app' || site === 'foreign'], isNobody],
  tools: [isDoubtfulName, isUnlistedPage, isNobody, isOutOfScope, isNoAgent],
  agents: [isDoubtfulName, isUnlistedPage, isNobody, isOutOfScope, isNoAgent],
  dispatch: [
    isDoubtfulName,
    isUnlistedPage,
    isNobody,
    ['secure_channel_required', (request) => isOutside(request) && !request.caller.sealed],
    ['agent_not_found', ({ agent }) => agent === 'none'],
    ['forbidden', (request) => isOutside(request) && request.agent === AGENTS['built-in']],
    isOutOfScope,
    isNoAgent,
  ],
  admin: [
    isDoubtfulName,
    ['forbidden', (request) => isOutside(request) || request.caller.credential !== 'none'],
    isNobody,
    ['cross_site', ({ site, hasRunToken }) => site !== 'none' && !(site === 'own' && hasRunToken)],
  ],
};

/** An `expect` for each of them would take seconds. */
function compare(request: PolicyRequest, got: string | undefined, expected: string | undefined): void {
  if (got !== expected) expect.fail(`${JSON.stringify(request)}: ${got} instead of ${expected}`);
}

test.each(CLASSES)('%s: every request that the types allow', (access) => {
  for (const request of everyRequest()) {
    const verdict = decide(access, request);
    const refusal = RULES[access].find(([, applies]) => applies(request))?.[0];
    compare(request, verdict.allowed ? undefined : verdict.refusal, refusal);
  }
});

test('only health shows less to some, and to all whom the owner does not know', () => {
  for (const access of CLASSES) {
    for (const request of everyRequest()) {
      const verdict = decide(access, request);
      if (!verdict.allowed) continue;
      const { caller, host } = request;
      const isStranger = caller.scope === 'anonymous' || host !== 'own' || isUnlistedPage[1](request);
      compare(request, verdict.view, access === 'health' && isStranger ? 'summary' : 'full');
    }
  }
});

test('a handler is told whose tools, tasks and memory it may touch: an agent’s credential reaches that agent alone', () => {
  for (const access of CLASSES) {
    for (const request of everyRequest()) {
      const verdict = decide(access, request);
      if (!verdict.allowed) continue;
      const isOfAgents = access === 'tools' || access === 'agents' || access === 'dispatch';
      const reach = isForOneAgent(request) ? request.caller.scope : 'all';
      compare(request, verdict.agents, isOfAgents ? reach : 'none');
    }
  }
});

const CALLERS: Readonly<Record<string, Caller>> = {
  'this machine': { transport: 'loopback', sealed: false, credential: 'none', scope: 'owner' },
  'this machine, key required': { transport: 'loopback', sealed: false, credential: 'none', scope: 'anonymous' },
  'this machine, master key': { transport: 'loopback', sealed: false, credential: 'key', scope: 'master' },
  'this machine, agent key': { transport: 'loopback', sealed: false, credential: 'key', scope: OWN },
  'LAN, anonymous': { transport: 'lan', sealed: false, credential: 'none', scope: 'anonymous' },
  'relay, anonymous': { transport: 'relay', sealed: false, credential: 'none', scope: 'anonymous' },
  'LAN, master key': { transport: 'lan', sealed: false, credential: 'key', scope: 'master' },
  'LAN, agent key': { transport: 'lan', sealed: false, credential: 'key', scope: OWN },
  'sealed, master device': { transport: 'relay', sealed: true, credential: 'device', scope: 'master' },
  'sealed, agent device': { transport: 'relay', sealed: true, credential: 'device', scope: OWN },
};

function word(verdict: Verdict): string {
  if (!verdict.allowed) return verdict.refusal;
  if (verdict.view === 'summary') return 'summary';
  return verdict.agents.startsWith('0x') ? 'own agent' : 'yes';
}

function answer(access: AccessClass, caller: Caller, more: Partial<PolicyRequest> = {}): string {
  const agent = AGENTS[access === 'dispatch' ? 'custom' : 'none'];
  return word(decide(access, { caller, site: 'none', host: 'own', hasRunToken: false, agent, ...more }));
}

test('docs/access.md shows these very tables', () => {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
    [row(head), row(head.map(() => '---')), ...rows.map(row)].join('\n');
  const document = readFileSync(new URL('../../docs/access.md', import.meta.url), 'utf8')
    .replace(/ +\|/g, ' |')
    .replace(/-{3,}/g, '---');
  const owner = CALLERS['this machine']!;
  const callers = Object.entries(CALLERS);
  const byCaller = callers.map(([name, caller]) => [name, ...CLASSES.map((access) => answer(access, caller))]);
  const byAgent = callers.map(([name, caller]) => [
    name,
    ...(['built-in', 'custom', 'another', 'unknown'] as const).map((agent) =>
      answer('dispatch', caller, { agent: AGENTS[agent] }),
    ),
  ]);
  const bySite = SITES.map((site) => [site, ...CLASSES.map((access) => answer(access, owner, { site }))]);
  const byName = HOSTS.map((host) => [host, ...CLASSES.map((access) => answer(access, owner, { host }))]);
  expect(document).toContain(table(['caller', ...CLASSES], byCaller));
  expect(document).toContain(table(['caller', 'built-in', 'in scope', 'another', 'no such agent'], byAgent));
  expect(document).toContain(table(['page', ...CLASSES], bySite));
  expect(document).toContain(table(['name', ...CLASSES], byName));
});
