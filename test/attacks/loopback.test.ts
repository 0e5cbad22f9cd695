/**
 * A connection from a loopback address, made by programs that are not the owner's: proxies that Debian ships, forwarders
 * of root, other users. And the owner's own programs, which need no key.
 */
import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { routes } from '../../gateway/routes.ts';
import { as, homeOf, OWNER, STRANGER } from '../support/local-users.ts';
import { beginOn } from '../support/on-machine.ts';
import { requestAll, type PlainAnswer, type PlainRequest } from '../support/requests.ts';
import { has, networkNamespaces, otherUsersAndProxies } from '../support/requirements.ts';
import { startProxy, type ProxyName } from '../support/reverse-proxies.ts';
import { cliPath, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const run = promisify(execFile);

/** What would end the server, or the keys, that the rest is asked of. */
const UNASKED = new Set(['POST /admin/shutdown', 'DELETE /admin/keys', 'DELETE /admin/keys/:id']);
const ASKED = routes.filter(({ method, path }) => !UNASKED.has(`${method} ${path}`));
const REQUESTS = 200;

/** As many as there are, in turn over all routes. */
function requestsTo(url: string, headers: Readonly<Record<string, string>> = {}): readonly PlainRequest[] {
  return Array.from({ length: REQUESTS }, (_, at) => {
    const { method, path } = ASKED[at % ASKED.length]!;
    const isRead = method === 'GET' || method === 'DELETE';
    return {
      url: `${url}${path.replace(':id', 'x').replace('*', 'x')}`,
      method,
      headers: { ...headers, ...(isRead ? {} : { 'content-type': 'application/json' }) },
      body: isRead ? '' : '{}',
    };
  });
}

const REFUSED = new Set([401, 403, 426, 429]);

const refused = (answers: readonly PlainAnswer[]) =>
  answers.flatMap(({ status }, at) => (REFUSED.has(status) ? [`${ASKED[at % ASKED.length]!.path}: ${status}`] : []));

/** What a stranger was given that only the owner, or a key, should be. */
const leaks = (answers: readonly PlainAnswer[]) =>
  answers.flatMap(({ status, body }, at) => {
    const { access, path } = ASKED[at % ASKED.length]!;
    if (access === 'public' || access === 'channel') return [];
    const isLeak = access === 'health' ? status === 200 && body.includes('"version"') : !REFUSED.has(status);
    return isLeak ? [`${path}: ${status}`] : [];
  });

describe.runIf(has(otherUsersAndProxies))('somebody else on this machine asks as if they were its owner', () => {
  let home: string;
  let server: TestServer;
  const start = (uid: number, where: string) => startServer({ home: where, within: as(uid) });
  const cli = (...args: string[]) => beginOn({ within: as(OWNER) }, [cliPath, ...args], { home }).ended;
  const statusBy = async (uid: number, request: Omit<PlainRequest, 'method'> & { readonly method?: string }) =>
    (await requestAll(as(uid), [{ method: 'GET', ...request }]))[0]!.status;

  beforeAll(async () => {
    home = await homeOf(OWNER);
    server = await start(OWNER, home);
  });
  afterAll(async () => {
    await server?.stop();
    await rm(home, { recursive: true, force: true });
  });

  test.each<ProxyName>(['nginx', 'HAProxy', 'socat'])(
    'nobody behind %s is the owner, on any route, and no key is made there',
    async (name) => {
      const proxy = await startProxy(name, server.port);
      try {
        expect(leaks(await requestAll([], requestsTo(proxy.url)))).toEqual([]);
        // The owner's own requests are strangers' as well, when a proxy sends them.
        expect(await statusBy(OWNER, { url: `${proxy.url}/admin/keys` })).not.toBe(200);
      } finally {
        await proxy.stop();
      }
      expect(JSON.parse((await cli('keys', 'list', '--json')).stdout)).toEqual([]);
    },
  );

  test.each([
    ['127.0.0.1', STRANGER],
    ['[::1]', STRANGER],
    ['127.0.0.1', 0],
    ['[::1]', 0],
  ] as const)('a program at %s of user %i is a stranger on every route', async (host, uid) => {
    expect(leaks(await requestAll(as(uid), requestsTo(`http://${host}:${server.port}`)))).toEqual([]);
  });

  test.each(['127.0.0.1', '[::1]', '[::ffff:127.0.0.1]'])(
    "the owner's programs at %s need no key on any route",
    async (host) => {
      const asked = requestsTo(`http://${host}:${server.port}`, { host: 'localhost' });
      expect(refused(await requestAll(as(OWNER), asked))).toEqual([]);
    },
  );

  test("the owner's plain curl administers, and another user's does not", async () => {
    const curl = async (uid: number) => {
      const args = ['-s', '-o', '/dev/null', '-w', '%{http_code}', `http://localhost:${server.port}/admin/keys`];
      const [command, ...rest] = [...as(uid), 'curl', ...args];
      return (await run(command!, rest)).stdout;
    };
    expect([await curl(OWNER), await curl(STRANGER), await curl(0)]).toEqual(['200', '403', '403']);
  });

  test('whoever shows the token of the run is let in, as only its owner could have read it', async () => {
    const url = `${server.url}/admin/keys`;
    const token = { 'x-postern-run-token': await server.runToken() };
    expect(await statusBy(STRANGER, { url, headers: token })).toBe(200);
    expect(await statusBy(STRANGER, { url, headers: { 'x-postern-run-token': 'guessed' } })).toBe(403);
    expect(await statusBy(STRANGER, { url, headers: { ...token, via: '1.1 proxy' } })).toBe(403);
  });

  test('a key gives another user here what it gives on the network, and never administration', async () => {
    const { token } = JSON.parse((await cli('keys', 'create', '--json')).stdout) as { token: string };
    const headers = { authorization: `Bearer ${token}` };
    const statuses = await Promise.all(
      ['/v1/models', '/admin/keys', '/metrics'].map((path) => statusBy(STRANGER, { url: server.url + path, headers })),
    );
    const dispatch = await statusBy(STRANGER, { url: `${server.url}/agents/x/run`, method: 'POST', headers });
    expect([...statuses, dispatch]).toEqual([200, 403, 403, 426]);
    await cli('keys', 'revoke', '--all');
  });

  test('however much strangers fail, the owner is served', async () => {
    const url = `${server.url}/v1/models`;
    const failing = Array.from({ length: 100 }, () => ({
      url,
      method: 'GET',
      headers: { authorization: `Bearer svc-v1.${'A'.repeat(40)}.${'A'.repeat(40)}` },
    }));
    const answers = await requestAll(as(STRANGER), failing);
    expect(answers.map(({ status }) => status)).toContain(429);
    expect(await statusBy(OWNER, { url })).toBe(200);
  });

  test('three hundred connections of the owner at once, and of a stranger between them, are told apart', async () => {
    const asked = Array.from({ length: 300 }, () => ({
      url: `${server.url}/v1/models`,
      method: 'GET',
      headers: { connection: 'close' },
    }));
    const [own, other] = await Promise.all([requestAll(as(OWNER), asked), requestAll(as(STRANGER), asked)]);
    expect(new Set(own.map(({ status }) => status))).toEqual(new Set([200]));
    expect(other.filter(({ status }) => status === 200)).toEqual([]);
  });

  test('of a service that root runs root is the owner, and nobody else', async () => {
    const own = await homeOf(0);
    const rootServer = await start(0, own);
    const proxies = await Promise.all((['nginx', 'HAProxy'] as const).map((name) => startProxy(name, rootServer.port)));
    try {
      expect(await statusBy(0, { url: `${rootServer.url}/admin/keys` })).toBe(200);
      expect(leaks(await requestAll(as(OWNER), requestsTo(rootServer.url)))).toEqual([]);
      for (const { url } of proxies) expect(await statusBy(0, { url: `${url}/admin/keys` })).toBe(403);
    } finally {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      await rootServer.stop();
      await rm(own, { recursive: true, force: true });
    }
  });

  test('on a second laptop another user gets nothing of home through "postern connect"', async () => {
    const gatewayHome = await homeOf(OWNER);
    const gateway = await start(OWNER, gatewayHome);
    const headers = { 'content-type': 'application/json' };
    const ask = { url: `${gateway.url}/admin/invites`, method: 'POST', headers, body: '{}' };
    const invite = JSON.parse((await requestAll(as(OWNER), [ask]))[0]!.body) as { code: string };
    const laptopHome = await homeOf(OWNER);
    const within = as(OWNER);
    const paired = await beginOn({ within }, [cliPath, 'pair', '-'], { home: laptopHome, input: invite.code }).ended;
    expect(paired).toMatchObject({ code: 0 });
    const laptop = await startServer({ home: laptopHome, within, program: [cliPath, 'connect'] });
    const proxy = await startProxy('socat', laptop.port);
    try {
      expect(await statusBy(OWNER, { url: `${laptop.url}/v1/models` })).toBe(200);
      expect(await statusBy(STRANGER, { url: `${laptop.url}/v1/models` })).toBe(403);
      expect(await statusBy(OWNER, { url: `${proxy.url}/v1/models` })).toBe(403);
    } finally {
      await proxy.stop();
      await laptop.stop();
      await gateway.stop();
      for (const folder of [laptopHome, gatewayHome]) await rm(folder, { recursive: true, force: true });
    }
  });
});

describe.runIf(has(networkNamespaces))('the system does not tell whose process asks', () => {
  test('serve and doctor say that every program here counts as the owner', async () => {
    const hidden = ['unshare', '--mount', 'sh', '-c', 'mount -t proc -o subset=pid proc /proc && exec "$@"', 'sh'];
    const home = await homeOf(0);
    const server = await startServer({ home, within: hidden });
    try {
      await until(() => server.log().includes('does not tell whose process'));
      const [answer] = await requestAll([...as(STRANGER)], [{ url: `${server.url}/admin/keys`, method: 'GET' }]);
      expect(answer!.status).toBe(200);
      const told = await beginOn({ within: hidden }, [cliPath, 'doctor'], { home }).ended;
      expect(told.stdout).toMatch(/^warning +processes/m);
    } finally {
      await server.stop();
      await rm(home, { recursive: true, force: true });
    }
  });
});
