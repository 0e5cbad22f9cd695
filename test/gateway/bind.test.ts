/** Several addresses under one port, on systems that refuse one of them. */
import { EventEmitter, once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { bindAll } from '../../gateway/bind.ts';

const servers: Server[] = [];
afterEach(() => servers.splice(0).forEach((server) => server.close()));

const BOTH = ['127.0.0.1', '::1'] as const;
const create = () => {
  const server = createServer();
  servers.push(server);
  return server;
};

/** A machine that answers each attempt to listen with the next of these codes; with none it listens on port 4000. */
function machine(codes: readonly (string | undefined)[]) {
  const tried: string[] = [];
  const closed: string[] = [];
  let next = 0;
  const createFake = (): Server => {
    let host = '';
    const fake = Object.assign(new EventEmitter(), {
      listen(options: { readonly host: string }, listening: () => void) {
        ({ host } = options);
        tried.push(host);
        const code = codes[next++];
        if (code === undefined) listening();
        else fake.emit('error', Object.assign(new Error(code), { code, address: host }));
      },
      address: () => ({ address: host, family: '', port: 4000 }),
      close: () => closed.push(host),
    });
    return fake as unknown as Server;
  };
  return { createFake, tried, closed };
}

test('all of them listen on the same port', async () => {
  const { port, hosts, servers: listening } = await bindAll(create, { hosts: BOTH, port: 0 });
  expect(hosts).toEqual(BOTH);
  expect(listening.map((server) => (server.address() as AddressInfo).port)).toEqual([port, port]);
});

test.each(['127.0.0.1', '::1', '::'])('another program at %s is named, and nothing listens', async (host) => {
  const other = create().listen({ host, port: 0, ipv6Only: true });
  await once(other, 'listening');
  const { port } = other.address() as AddressInfo;
  await expect(bindAll(create, { hosts: BOTH, port })).rejects.toMatchObject({ code: 'EADDRINUSE' });
  const mine = servers.filter((server) => server !== other);
  expect(mine.map(({ listening }) => listening)).toEqual(mine.map(() => false));
});

test.each(['EAFNOSUPPORT', 'EADDRNOTAVAIL'])('a machine without IPv6 (%s) listens on IPv4', async (code) => {
  const { createFake } = machine([undefined, code]);
  expect(await bindAll(createFake, { hosts: BOTH, port: 4000 })).toMatchObject({ port: 4000, hosts: ['127.0.0.1'] });
});

test.each([[['EADDRNOTAVAIL']], [[undefined, 'EACCES']], [[undefined, 'EMFILE']]])(
  'whatever else is refused is a failure: %j',
  async (codes) => {
    const { createFake, closed } = machine(codes);
    await expect(bindAll(createFake, { hosts: BOTH, port: 4000 })).rejects.toMatchObject({ code: codes.at(-1) });
    expect(closed).toHaveLength(codes.length - 1);
  },
);

test('a free port is looked for until it is free everywhere, and not for ever', async () => {
  const lucky = machine([undefined, 'EADDRINUSE', undefined, undefined]);
  expect(await bindAll(lucky.createFake, { hosts: BOTH, port: 0 })).toMatchObject({ hosts: BOTH });
  expect(lucky.closed).toEqual(['127.0.0.1']);
  const unlucky = machine(Array.from({ length: 100 }, (_, at) => (at % 2 === 0 ? undefined : 'EADDRINUSE')));
  await expect(bindAll(unlucky.createFake, { hosts: BOTH, port: 0 })).rejects.toMatchObject({ code: 'EADDRINUSE' });
});
