/**
 * Who may call what, asked of a started server: every route under every alias, from this machine and from another one,
 * with every kind of credential in either header. What is expected stands here as data, and is not asked of the policy.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../gateway/routes.ts';
import { createKey, expired, forge, setSettings } from '../support/access-keys.ts';
import { createNetwork, type TestNetwork } from '../support/network.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { requestAll, runProgram, type PlainAnswer, type PlainRequest } from '../support/requests.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';

/** By address, not by what the route table says of it. */
const CLASSES: readonly (readonly [RegExp, string])[] = [
  [/^\/($|openapi\.json$)/, 'public'],
  [/^\/(pair|secure\/)/, 'channel'],
  [/^\/health$/, 'health'],
  [/^\/mcp\//, 'tools'],
  [/^\/(memory\/ingest|agents|tasks\/.*)$/, 'agents'],
  [/^\/agents\/[^/]+\/(run|dispatch)$/, 'dispatch'],
  [/^\/(admin|metrics|(pull|copy|delete|create|push)$)/, 'admin'],
  [/^\//, 'inference'],
];
const classOf = (path: string): string => CLASSES.find(([pattern]) => pattern.test(path))![1];

const NAMES = ['public', 'channel', 'health', 'inference', 'tools', 'agents', 'dispatch', 'admin'];
const LOOPBACK = ['in', 'in', 'all', 'in', 'in', 'in', 'in', 'in'];
const ANONYMOUS = ['in', 'in', 'summary', 401, 401, 401, 401, 403];
const KNOWN = ['in', 'in', 'all', 'in', 'in', 'in', 426, 403];

const ALIASES = ['', '/v1', '/api', '/v1/api'];
/** What would end the server, or the keys, that the rest is asked of. */
const UNASKED = new Set(['POST /admin/shutdown', 'DELETE /admin/keys', 'DELETE /admin/keys/:id']);

describe.runIf(has(networkNamespaces))('the matrix of access', () => {
  let home: string;
  let network: TestNetwork;
  let server: TestServer;
  /** By kind, and what the kind is answered from another machine. */
  let tokens: Readonly<Record<string, readonly [string | undefined, readonly (string | number)[]]>>;
  let agents: readonly string[];

  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'postern-matrix-'));
    await setSettings(home, { 'access.requestsPerMinute': 1_000_000, 'access.requestsAtOnce': 1000 });
    const late = await createKey(home, '--expires', '1s');
    const gone = await createKey(home);
    await runCli(['keys', 'revoke', gone.id], { SVC_HOME: home });
    const [master, own, other] = [
      await createKey(home),
      await createKey(home, '--agent', '1'),
      await createKey(home, '--agent', '2', '--expires', 'never'),
    ];
    agents = [own.scope, other.scope];
    tokens = {
      none: [undefined, ANONYMOUS],
      malformed: [`${master.token}0`, ANONYMOUS],
      forged: [forge(master), ANONYMOUS],
      expired: [(await expired(home, late)).token, ANONYMOUS],
      revoked: [gone.token, ANONYMOUS],
      'own agent': [own.token, KNOWN],
      'other agent': [other.token, KNOWN],
      master: [master.token, KNOWN],
    };
    network = await createNetwork();
    // More addresses than requests: each comes from a stranger that has not failed before.
    execFileSync('ip', ['-n', network.guest.within.at(-1)!, 'route', 'add', 'local', '10.78.0.0/16', 'dev', 'lo']);
    execFileSync('ip', [
      '-n',
      network.home.within.at(-1)!,
      'route',
      'add',
      '10.78.0.0/16',
      'via',
      network.guest.address,
    ]);
    server = await startServer({ home, within: network.home.within, args: ['--expose'] });
  });
  afterAll(async () => {
    await server?.stop();
    await network?.remove();
    await rm(home, { recursive: true, force: true });
  });

  interface Cell extends PlainRequest {
    readonly name: string;
    readonly expected: string | number;
  }

  const shownIn = (header: string, token: string): Record<string, string> =>
    header === 'x-api-key' ? { 'x-api-key': token } : { authorization: `Bearer ${token}` };

  function cells(base: string, columnOf: (kind: string) => readonly (string | number)[]): readonly Cell[] {
    let count = 0;
    const kinds = Object.entries(tokens).flatMap(([kind, [token]]) =>
      token === undefined
        ? [{ kind, headers: {} }]
        : ['bearer', 'x-api-key'].map((header) => ({ kind: `${kind} (${header})`, headers: shownIn(header, token) })),
    );
    return routes
      .filter(({ method, path }) => !UNASKED.has(`${method} ${path}`))
      .flatMap(({ method, path }) =>
        ALIASES.flatMap((alias) =>
          kinds.map(({ kind, headers }) => {
            const filled = path.replace(':id', agents[count % 2]!).replace('*', 'x');
            const expected = columnOf(kind.replace(/ \(.*/, ''))[NAMES.indexOf(classOf(filled))]!;
            const isRead = method === 'GET' || method === 'DELETE';
            count += 1;
            return {
              name: `${method} ${alias}${filled}, ${kind}`,
              expected,
              url: `${base}${alias}${filled}`,
              method,
              // Each from an address of its own, on this machine too: what is counted by address is not asked here.
              from: `${base.includes('127.0.0.1') ? '127.78' : '10.78'}.${count >> 8}.${count & 255}`,
              headers: { ...headers, ...(isRead ? {} : { 'content-type': 'application/json' }) },
              body: isRead ? '' : '{}',
            };
          }),
        ),
      );
  }

  /** What an answer amounts to, in the words of the table. */
  function meant({ status, body }: PlainAnswer, expected: string | number): string | number {
    if ([0, 401, 403, 426, 429].includes(status)) return status;
    if (expected !== 'all' && expected !== 'summary') return 'in';
    return Object.keys(JSON.parse(body) as object).length > 2 ? 'all' : 'summary';
  }

  const wrong = (asked: readonly Cell[], answers: readonly PlainAnswer[]) =>
    asked
      .map(({ name, expected }, at) => ({ name, expected, got: meant(answers[at]!, expected) }))
      .filter(({ expected, got }) => expected !== got);

  test('from another machine', async () => {
    const asked = cells(`http://${network.home.address}:${server.port}`, (kind) => tokens[kind]![1]);
    const answers = await requestAll(network.guest.within, asked);
    expect(wrong(asked, answers)).toEqual([]);
    expect(asked.length).toBeGreaterThan(3000);
    // Whatever the reason, a refusal looks the same in each style.
    const forms = answers
      .filter(({ status }) => status === 401)
      .map(({ headers, body }) => `${headers['www-authenticate']} ${body}`);
    expect(new Set(forms).size).toBe(3);
    const upgrade = answers.filter(({ status }) => status === 426);
    expect(new Set(upgrade.map(({ headers }) => headers['upgrade']))).toEqual(new Set(['svc-secure-v1']));
  });

  test('from this machine no key is asked for, and any value does', async () => {
    const asked = cells(`http://127.0.0.1:${server.port}`, () => LOOPBACK);
    expect(wrong(asked, await requestAll(network.home.within, asked))).toEqual([]);
  });

  test('an over-long body is 413 before anybody is identified, counted or declared', async () => {
    const base = `http://${network.home.address}:${server.port}`;
    const sizes = { '/pair': 65_537, '/secure/session': 8193, '/v1/chat/completions': 32 * 1024 * 1024 + 1 };
    const asked = Object.entries(sizes).flatMap(([path, bodyBytes], row) =>
      [tokens['none']![0], tokens['forged']![0], tokens['master']![0]].flatMap((token, column) =>
        [false, true].map((isChunked, last) => ({
          url: base + path,
          method: 'POST',
          headers: token === undefined ? {} : shownIn('bearer', token),
          from: `10.78.255.${row * 6 + column * 2 + last + 1}`,
          bodyBytes,
          isChunked,
        })),
      ),
    );
    const answers = await requestAll(network.guest.within, asked);
    expect(answers.map(({ status }) => status)).toEqual(asked.map(() => 413));
  });

  test('official clients get in with a key', async () => {
    const url = `http://${network.home.address}:${server.port}`;
    const told = await runProgram(network.guest.within, 'clients-program', { url, key: tokens['own agent']![0] });
    expect(told).toEqual({
      openai: expect.stringContaining('Paris'),
      'openai stream': expect.stringContaining('Paris'),
      anthropic: expect.stringContaining('Paris'),
      'anthropic x-api-key': expect.stringContaining('Paris'),
    });
    const refused = await runProgram<object>(network.guest.within, 'clients-program', {
      url,
      key: tokens['revoked']![0],
    });
    for (const words of Object.values(refused)) expect(words).toMatch(/401/);
  });

  test('twenty keys that do not count in a minute, then whoever shows another one at that address waits', async () => {
    const url = `http://${network.home.address}:${server.port}/v1/models`;
    const from = '10.78.254.1';
    const bad = { url, method: 'GET', headers: shownIn('bearer', tokens['forged']![0]!), from };
    const good = { ...bad, headers: shownIn('bearer', tokens['master']![0]!) };
    const tries = await requestAll(
      network.guest.within,
      Array.from({ length: 20 }, () => bad),
    );
    expect(tries.map(({ status }) => status)).toEqual(Array(20).fill(401));
    const [blocked, other, valid] = await requestAll(network.guest.within, [
      bad,
      { ...bad, from: '10.78.254.2' },
      good,
    ]);
    expect([blocked!.status, other!.status, valid!.status]).toEqual([429, 401, 200]);
    expect(Number(blocked!.headers['retry-after'])).toBeGreaterThan(0);
    expect(JSON.parse(blocked!.body)).toMatchObject({ error: { type: 'rate_limit_error' } });
    // Whoever shows none has nothing to guess with.
    const [stranger] = await requestAll(network.guest.within, [{ url, method: 'GET', from }]);
    expect(stranger!.status).toBe(401);
  });
});
