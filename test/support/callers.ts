/** One caller of each scope that there is, of one server, asking alike. */
import { findInviteCode } from '../../identity/invite-code.ts';
import { createKey } from './access-keys.ts';
import { askForInvite } from './invites.ts';
import { pairRaw, rawSession, request, sendCall, textOf } from './raw-device.ts';
import type { TestServer } from './server.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

export interface TestCaller {
  readonly name: string;
  ask(method: string, path: string, json?: unknown): Promise<Answer>;
}

export function plainCaller(server: TestServer, name: string, headers: Readonly<Record<string, string>>): TestCaller {
  return {
    name,
    async ask(method, path, json) {
      const body = json === undefined ? {} : { body: JSON.stringify(json) };
      const sent = { ...headers, ...(json === undefined ? {} : { 'content-type': 'application/json' }) };
      const answer = await fetch(server.url + path, { method, headers: sent, ...body });
      return { status: answer.status, headers: Object.fromEntries(answer.headers), text: await answer.text() };
    },
  };
}

/** What came through a proxy is not this machine's, and needs its key. */
const keyCaller = (server: TestServer, name: string, token: string): TestCaller =>
  plainCaller(server, name, { via: '1.1 test', authorization: `Bearer ${token}` });

/** A web page whose origin its browser tells; any other fetches without saying from where. */
export const pageCaller = (server: TestServer, origin: string | undefined): TestCaller =>
  plainCaller(server, `the page ${origin ?? 'without an origin'}`, {
    'sec-fetch-site': 'cross-site',
    ...(origin === undefined ? {} : { origin }),
  });

async function deviceCaller(server: TestServer, name: string): Promise<TestCaller> {
  const code = findInviteCode(await askForInvite(server));
  if (code === undefined) throw new Error('the invite is none');
  const session = await rawSession(server.url, await pairRaw(server.url, code));
  return {
    name,
    async ask(method, path, json) {
      const answer = await sendCall(`${server.url}/secure/call`, session, request(method, path, { json }));
      const { status = 0, headers = [] } = answer.head ?? {};
      return { status, headers: Object.fromEntries(headers), text: textOf(answer) };
    },
  };
}

export async function createCallers(server: TestServer): Promise<readonly TestCaller[]> {
  const key = async (name: string, ...args: string[]) =>
    keyCaller(server, name, (await createKey(server.home, ...args)).token);
  return [
    plainCaller(server, 'the owner', {}),
    await key('a master key'),
    await key('another master key'),
    await key("an agent's key", '--agent', '1'),
    await key('another key of that agent', '--agent', '1'),
    await key("another agent's key", '--agent', '2'),
    await deviceCaller(server, 'a device'),
    await deviceCaller(server, 'another device'),
    pageCaller(server, 'https://one.example'),
    pageCaller(server, 'https://two.example'),
    pageCaller(server, undefined),
  ];
}
