/** The whole truth table of the policy, and its document, which is made from the same function. */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Caller } from '../../gateway/caller.ts';
import type { Host, Site } from '../../gateway/guard.ts';
import { decide, type AccessClass, type PolicyRequest, type Verdict } from '../../gateway/policy.ts';

const OWN = '0x1111111111111111111111111111111111111111';
const OTHER = '0x2222222222222222222222222222222222222222';

const CLASSES: readonly AccessClass[] = [
  'public',
  'channel',
  'health',
  'inference',
  'tools',
  'agents',
  'dispatch',
  'admin',
];
const SITES: readonly Site[] = ['none', 'own', 'listed', 'app', 'any', 'foreign'];
const HOSTS: readonly Host[] = ['own', 'ambiguous', 'foreign'];
const CALLERS: Readonly<Record<string, Caller>> = {
  'this machine': { transport: 'loopback', sealed: false, credential: 'none', scope: 'owner' },
  'this machine, key required': { transport: 'loopback', sealed: false, credential: 'none', scope: 'nobody' },
  'this machine, master key': { transport: 'loopback', sealed: false, credential: 'key', scope: 'master' },
  'this machine, agent key': { transport: 'loopback', sealed: false, credential: 'key', scope: OWN },
  'LAN, anonymous': { transport: 'lan', sealed: false, credential: 'none', scope: 'nobody' },
  'relay, anonymous': { transport: 'relay', sealed: false, credential: 'none', scope: 'nobody' },
  'LAN, master key': { transport: 'lan', sealed: false, credential: 'key', scope: 'master' },
  'LAN, agent key': { transport: 'lan', sealed: false, credential: 'key', scope: OWN },
  'sealed, master device': { transport: 'relay', sealed: true, credential: 'device', scope: 'master' },
  'sealed, agent device': { transport: 'relay', sealed: true, credential: 'device', scope: OWN },
};

const word = (verdict: Verdict): string =>
  verdict.allowed ? (verdict.view === 'full' ? 'yes' : 'summary') : verdict.refusal;
const decideFor = (access: AccessClass, caller: string, more: Partial<PolicyRequest> = {}): string =>
  word(decide(access, { caller: CALLERS[caller]!, site: 'none', host: 'own', hasRunToken: false, ...more }));

/** Without any web page behind the request: rows are callers, columns the access classes. */
const WITHOUT_PAGE: Readonly<Record<string, readonly string[]>> = {
  'this machine': ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'],
  'this machine, key required': [
    'yes',
    'yes',
    'summary',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
  ],
  'this machine, master key': ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'forbidden'],
  'this machine, agent key': ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'forbidden'],
  'LAN, anonymous': [
    'yes',
    'yes',
    'summary',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
    'forbidden',
  ],
  'relay, anonymous': [
    'yes',
    'yes',
    'summary',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
    'unauthenticated',
    'forbidden',
  ],
  'LAN, master key': ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'secure_channel_required', 'forbidden'],
  'LAN, agent key': ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'secure_channel_required', 'forbidden'],
  'sealed, master device': ['yes', 'forbidden', 'yes', 'yes', 'yes', 'yes', 'yes', 'forbidden'],
  'sealed, agent device': ['yes', 'forbidden', 'yes', 'yes', 'yes', 'yes', 'yes', 'forbidden'],
};

/** On this machine, from a browser: rows are sites. `admin` from an own page needs the run token, tested below. */
const WITH_PAGE: Readonly<Record<Site, readonly string[]>> = {
  none: ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'],
  own: ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'cross_site'],
  listed: ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'cross_site'],
  app: ['yes', 'yes', 'summary', 'cross_site', 'cross_site', 'cross_site', 'cross_site', 'cross_site'],
  any: ['yes', 'cross_site', 'summary', 'yes', 'cross_site', 'cross_site', 'cross_site', 'cross_site'],
  foreign: ['yes', 'cross_site', 'summary', 'cross_site', 'cross_site', 'cross_site', 'cross_site', 'cross_site'],
};

test.each(Object.keys(CALLERS))('%s, no page', (caller) => {
  expect(CLASSES.map((access) => decideFor(access, caller))).toEqual(WITHOUT_PAGE[caller]);
});

test.each(SITES)('this machine, page: %s', (site) => {
  expect(CLASSES.map((access) => decideFor(access, 'this machine', { site }))).toEqual(WITH_PAGE[site]);
});

test('every other combination of caller and page: the stricter of the two, and never more than either', () => {
  for (const caller of Object.keys(CALLERS)) {
    for (const site of SITES) {
      for (const [column, access] of CLASSES.entries()) {
        const got = decideFor(access, caller, { site });
        const alone = WITHOUT_PAGE[caller]![column]!;
        const paged = WITH_PAGE[site][column]!;
        if (alone === 'yes' && paged === 'yes') expect(got).toBe('yes');
        else expect([alone, paged].filter((one) => one !== 'yes')).toContain(got);
      }
    }
  }
});

test('admin from our own page takes the token of this run; nothing else is changed by it', () => {
  expect(decideFor('admin', 'this machine', { site: 'own', hasRunToken: true })).toBe('yes');
  for (const site of ['listed', 'app', 'any', 'foreign'] as const) {
    expect(decideFor('admin', 'this machine', { site, hasRunToken: true })).toBe('cross_site');
  }
  for (const caller of Object.keys(CALLERS).filter((name) => !/^this machine(, key required)?$/.test(name))) {
    expect(decideFor('admin', caller, { hasRunToken: true })).toBe('forbidden');
  }
});

test.each([
  ['this machine', true, OWN, 'yes'],
  ['this machine, master key', true, OWN, 'yes'],
  ['this machine, agent key', true, OWN, 'forbidden'],
  ['this machine, agent key', false, OWN, 'yes'],
  ['this machine, agent key', false, OTHER, 'agent_scope_denied'],
  ['this machine, key required', false, OWN, 'unauthenticated'],
  ['sealed, master device', false, OWN, 'yes'],
  ['sealed, master device', true, OWN, 'forbidden'],
  ['sealed, agent device', false, OWN, 'yes'],
  ['sealed, agent device', false, OTHER, 'agent_scope_denied'],
  ['sealed, agent device', true, OWN, 'forbidden'],
  ['LAN, master key', false, OWN, 'secure_channel_required'],
  ['LAN, anonymous', false, OWN, 'unauthenticated'],
] as const)('dispatch by %s (built-in %s) to %s: %s', (caller, isBuiltIn, address, expected) => {
  expect(decideFor('dispatch', caller, { agent: { isBuiltIn, address } })).toBe(expected);
});

/** On this machine, by names that other machines could have as well, and by those of other machines. */
const BY_NAME: Readonly<Record<Host, readonly string[]>> = {
  own: ['yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes', 'yes'],
  ambiguous: ['yes', 'foreign_host', 'summary', 'yes', 'foreign_host', 'foreign_host', 'foreign_host', 'foreign_host'],
  foreign: CLASSES.map(() => 'foreign_host'),
};

test.each(HOSTS)('this machine, by a name that is %s', (host) => {
  expect(CLASSES.map((access) => decideFor(access, 'this machine', { host }))).toEqual(BY_NAME[host]);
  // The token of the run does not make a name better.
  expect(decideFor('admin', 'this machine', { host, hasRunToken: true })).toBe(BY_NAME[host][7]);
});

test('docs/access.md shows these very tables', () => {
  const row = (cells: readonly string[]) => `| ${cells.join(' | ')} |`;
  const table = (head: string, rows: readonly (readonly string[])[]) =>
    [row([head, ...CLASSES]), row(['---', ...CLASSES.map(() => '---')]), ...rows.map(row)].join('\n');
  const document = readFileSync(new URL('../../docs/access.md', import.meta.url), 'utf8')
    .replace(/ +\|/g, ' |')
    .replace(/-{3,}/g, '---');
  const callers = Object.keys(CALLERS).map((caller) => [caller, ...CLASSES.map((access) => decideFor(access, caller))]);
  const sites = SITES.map((site) => [site, ...CLASSES.map((access) => decideFor(access, 'this machine', { site }))]);
  expect(document).toContain(table('caller', callers));
  expect(document).toContain(table('page', sites));
  const names = HOSTS.map((host) => [host, ...CLASSES.map((access) => decideFor(access, 'this machine', { host }))]);
  expect(document).toContain(table('name', names));
});
