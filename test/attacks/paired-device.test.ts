/** A device that is paired, and was taken over: what it can make the gateway hold, and for how long. */
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { concatBytes } from '../../channel/bytes.ts';
import { encodeRequestHead } from '../../channel/head.ts';
import { HINT } from '../../channel/hint.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { MAX_DATA_BYTES } from '../../channel/record.ts';
import { ALL_BODY_BYTES, DEVICE_BODY_BYTES } from '../../gateway/sealed/body-budget.ts';
import { DEVICE_ANSWER_BYTES } from '../../gateway/sealed/call-table.ts';
import type { InnerAnswer } from '../../gateway/sealed/inner-request.ts';
import { findInviteCode } from '../../identity/invite-code.ts';
import { createFakeTime, type FakeTime } from '../core/fake-time.ts';
import { openChannelServer, type OpenedChannelServer } from '../support/channel-server-here.ts';
import { HostileDevice, paddingCrypto, type HostileCall } from '../support/hostile-device.ts';
import { askForInvite, newInvite } from '../support/invites.ts';
import {
  newIdempotencyKey,
  openCall,
  pairRaw,
  sendPieces,
  startRawSession,
  type PairedRaw,
} from '../support/raw-device.ts';
import { startServer } from '../support/server.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';
import { until } from '../support/wait.ts';

const MIB = 1024 * 1024;
/** Of a device, in all of its sessions. */
const MAX_CALLS = 128;

let home: string;
let service: ServiceHere;
let device: PairedRaw;
let time: FakeTime;
let opened: OpenedChannelServer;

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
  device = await pairRaw(service.url, await newInvite(service));
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});
beforeEach(() => {
  time = createFakeTime(Date.now());
  opened = openChannelServer(service, ({ path }) => answers[path]!(), time, 32 * MIB);
});

const bytes = (status: number, body: AsyncIterable<Uint8Array>, bodyBytes: number | null = null): InnerAnswer => ({
  status,
  headers: [['content-type', bodyBytes === null ? 'text/event-stream' : 'application/octet-stream']],
  bodyBytes,
  body,
});
async function* repeated(count: number, size = 60_000): AsyncGenerator<Uint8Array> {
  for (let piece = 0; piece < count; piece++) yield new Uint8Array(size);
}
async function* silence(): AsyncGenerator<Uint8Array> {
  await new Promise(() => undefined);
  yield new Uint8Array();
}
const answers: Record<string, () => InnerAnswer> = {
  '/endless': () => bytes(200, repeated(Infinity)),
  '/silent': () => bytes(200, silence()),
  '/mebibyte': () => bytes(200, repeated(16, MIB / 16), MIB),
  '/short': () => bytes(200, repeated(1, 10), 10),
};

const hostiles: HostileDevice[] = [];
function newHostile(paired: PairedRaw): HostileDevice {
  const hostile = new HostileDevice(opened.channelServer, paired);
  hostiles.push(hostile);
  return hostile;
}
// A channel server that closes waits a moment for whoever reads, and the clock stands still then.
afterEach(() => {
  for (const hostile of hostiles.splice(0)) hostile.cutAll();
});

const held = () => opened.channelServer.counts().heldBytes;
const nothing = { calls: 0, heldBytes: 0 };
/** Lets the clock go on until the gateway holds nothing of anybody's. */
const untilNothing = () =>
  until(() => {
    time.advance(1000);
    const { calls, heldBytes } = opened.channelServer.counts();
    return calls === 0 && heldBytes === 0;
  });
const turn = () => new Promise((resolve) => setImmediate(resolve));
async function settle(): Promise<void> {
  for (let turns = 0; turns < 50; turns++) {
    time.advance(50);
    await turn();
  }
}

/** Begins calls, in as many sessions as it takes, until one is refused. @returns those that were let in */
async function fill(
  hostile: HostileDevice,
  begin: (session: InitiatorSession) => HostileCall,
  most: number,
): Promise<readonly HostileCall[]> {
  const letIn: HostileCall[] = [];
  for (let session = await newSession(hostile), inSession = 0; letIn.length < most;) {
    const call = begin(session);
    await settle();
    const hint = await Promise.race([call.take(), turn()]).then((piece) =>
      piece instanceof Uint8Array && piece.length === 4 ? piece[3] : undefined,
    );
    if (hint === undefined) letIn.push(call);
    if (hint !== undefined && inSession === 0) return letIn;
    inSession += 1;
    if (hint !== undefined || inSession === 32) [session, inSession] = [await newSession(hostile), 0];
  }
  return letIn;
}

function newSession(hostile: HostileDevice): Promise<InitiatorSession> {
  // So many a second, of all devices.
  time.advance(1000);
  return hostile.newSession();
}

describe('a paired device that fills the memory', () => {
  test('with records of one byte, padded to 64 KiB: what it can hold is what it said', async () => {
    const server = await startServer();
    const raw = await pairRaw(server.url, findInviteCode(await askForInvite(server))!);
    const { session } = await startRawSession(server.url, raw, { crypto: paddingCrypto });
    const before = await residentBytes(server.process.pid);
    const requests = await Promise.all(Array.from({ length: 16 }, () => unfinished(server.url, session!, 250)));
    // 250 MiB were sent, and are held up in nothing: the gateway has taken them.
    const grown = (await residentBytes(server.process.pid)) - before;
    for (const request of requests) request.destroy();
    await server.stop();
    expect(grown).toBeLessThan(125 * MIB);
  });

  test('with bodies that never end: 64 MiB of a device, and the rest is refused', async () => {
    const hostile = newHostile(device);
    const session = await newSession(hostile);
    const record = new Uint8Array(MAX_DATA_BYTES);
    const calls = Array.from({ length: 32 }, () => beginBody(hostile, session));
    for (const call of calls) {
      for (let count = 0; count < 16 * 6; count++) call.send(call.call.request.sealData(record));
      await settle();
      expect(held()).toBeLessThanOrEqual(DEVICE_BODY_BYTES + 32 * 16 * 1024);
    }
    expect(held()).toBeGreaterThan(DEVICE_BODY_BYTES / 2);
    expect(DEVICE_BODY_BYTES).toBeLessThan(ALL_BODY_BYTES / 2);
    hostile.cutAll();
    await untilNothing();
  });

  test('with answers that it never takes: they wait, and it makes no more calls', async () => {
    const hostile = newHostile(device);
    const calls = await fill(hostile, (session) => hostile.ask(session, 'POST', '/endless'), MAX_CALLS + 40);
    expect(calls.length).toBeLessThanOrEqual(MAX_CALLS);
    await settle();
    expect(held()).toBeLessThanOrEqual(2 * DEVICE_ANSWER_BYTES);
    const other = newHostile(await pairRaw(service.url, await newInvite(service)));
    const answer = await other.ask(await newSession(other), 'GET', '/short').read();
    expect(answer.head?.status).toBe(200);
    hostile.cutAll();
    await untilNothing();
  });

  test('with answers that it took, which are kept for the case that it comes back: the oldest go', async () => {
    const hostile = newHostile(device);
    const taken: HostileCall[] = [];
    let session = await newSession(hostile);
    for (let count = 0; count < 80; count++) {
      if (count % 30 === 0) session = await newSession(hostile);
      const call = hostile.ask(session, 'POST', '/mebibyte');
      expect((await call.read()).body.length).toBe(MIB);
      taken.push(call);
      expect(held()).toBeLessThanOrEqual(DEVICE_ANSWER_BYTES + 2 * MIB);
    }
    const again = async (at: number) => {
      const reading = hostile.attach(session, taken.at(at)!.reference, 8).read();
      await settle();
      return (await reading).head?.status;
    };
    expect([await again(0), await again(-1)]).toEqual([410, 200]);
    await untilNothing();
  });
});

describe('a paired device that takes all places', () => {
  test('with sessions that it leaves while their calls run: they count until they end', async () => {
    const hostile = newHostile(device);
    const calls = await fill(hostile, (session) => hostile.ask(session, 'POST', '/silent'), MAX_CALLS + 40);
    expect(calls.length).toBe(MAX_CALLS);
    expect(opened.channelServer.counts().sessions).toBeLessThanOrEqual(8);
    const refused = hostile.ask(await newSession(hostile), 'GET', '/short');
    expect(await refused.read()).toMatchObject({ hint: HINT.tooManyCalls });
    calls[0]!.cut();
    await settle();
    time.advance(120_000);
    await settle();
    expect((await hostile.ask(await newSession(hostile), 'GET', '/short').read()).head?.status).toBe(200);
    hostile.cutAll();
    await untilNothing();
  });

  test('with a call that reads from itself: it ends at once', async () => {
    const hostile = newHostile(device);
    const session = await newSession(hostile);
    const answer = hostile.attachToItself(session).read();
    await settle();
    expect((await answer).head?.status).toBe(410);
    expect(opened.channelServer.counts()).toMatchObject(nothing);
  });

  test('with calls that read from each other: each ends at once', async () => {
    const hostile = newHostile(device);
    const session = await newSession(hostile);
    const { sessionId } = session.terms;
    const one = hostile.attach(session, { sessionId, callNumber: 1 });
    const two = hostile.attach(session, { sessionId, callNumber: 0 });
    await settle();
    expect([(await one.read()).head?.status, (await two.read()).head?.status]).toEqual([410, 410]);
    // One that reads from a call that goes on is nothing to read from either.
    const stream = hostile.ask(session, 'POST', '/silent');
    const reading = hostile.attach(session, stream.reference);
    await settle();
    const chained = hostile.attach(session, reading.reference);
    await settle();
    expect((await chained.read()).head?.status).toBe(410);
    hostile.cutAll();
    await untilNothing();
  });

  test('with a storm of calls that read from one: the last one does, and no more are let in than calls may be', async () => {
    const hostile = newHostile(device);
    const session = await newSession(hostile);
    const stream = hostile.ask(session, 'POST', '/silent');
    await settle();
    const storm = Array.from({ length: 372 }, () => hostile.attach(session, stream.reference));
    await settle();
    expect(opened.channelServer.counts().calls).toBeLessThanOrEqual(33);
    expect(held()).toBeLessThan(4 * MIB);
    const ends = await Promise.all(storm.slice(0, 20).map((call) => Promise.race([call.read(), settle()])));
    expect(ends.length).toBe(20);
    hostile.cutAll();
    await untilNothing();
  });

  test('with reading again and again what is over: it ends each time, and is forgotten', async () => {
    const hostile = newHostile(device);
    const session = await newSession(hostile);
    const finished = hostile.ask(session, 'POST', '/short');
    expect((await finished.read()).head?.status).toBe(200);
    for (let count = 0; count < 40; count++) {
      const reading = hostile.attach(session, finished.reference).read();
      await settle();
      expect((await reading).head?.status).toBe(200);
    }
    expect(opened.channelServer.counts().calls).toBe(1);
    await untilNothing();
  });

  test('of another device: they are not there for it', async () => {
    const [hostile, other] = [device, await pairRaw(service.url, await newInvite(service))].map(newHostile) as [
      HostileDevice,
      HostileDevice,
    ];
    const stream = other.ask(await newSession(other), 'POST', '/silent');
    await settle();
    const reading = hostile.attach(await newSession(hostile), stream.reference).read();
    await settle();
    expect((await reading).head?.status).toBe(410);
    other.cutAll();
    await untilNothing();
  });
});

describe('a device that is revoked', () => {
  test('holds nothing any more: no session, no body that was still to come, no answer that it left unread', async () => {
    const paired = await pairRaw(service.url, await newInvite(service));
    const hostile = newHostile(paired);
    const session = await newSession(hostile);
    const body = beginBody(hostile, session);
    body.send(body.call.request.sealData(new Uint8Array(MAX_DATA_BYTES)));
    const unread = hostile.ask(session, 'POST', '/mebibyte');
    const stream = hostile.ask(session, 'POST', '/endless');
    expect((await hostile.ask(session, 'POST', '/mebibyte').read()).head?.status).toBe(200);
    await settle();
    expect(held()).toBeGreaterThan(MIB);
    const { devices } = await service.running.identity.openPairings();
    const { kid } = devices.find(paired.grant.deviceId)!;
    await devices.revoke(paired.grant.deviceId);
    const reading = [body, stream].map((call) => call.read());
    const revoked = opened.channelServer.revoke([kid]);
    await settle();
    await revoked;
    expect(opened.channelServer.counts()).toEqual({ sessions: 0, ...nothing });
    for (const { abort } of await Promise.all(reading)) expect(abort?.code).toBe('revoked');
    unread.cut();
  });
});

/** A request whose body is still to come. */
function beginBody(hostile: HostileDevice, session: InitiatorSession): HostileCall {
  const head = { method: 'POST', path: '/short', headers: [], bodyBytes: null, idempotencyKey: newIdempotencyKey() };
  return hostile.begin(
    session,
    (call) => concatBytes(call.header, call.request.sealHead(encodeRequestHead(head))),
    false,
  );
}

/** Sends so many records of a request and not its end. Resolves when the gateway has taken all of them. */
async function unfinished(url: string, session: InitiatorSession, records: number) {
  const call = openCall(session);
  const head = { method: 'POST', path: '/v1/x', headers: [], bodyBytes: null, idempotencyKey: newIdempotencyKey() };
  const sealedHead = call.request.sealHead(encodeRequestHead(head));
  function* pieces(): Generator<Uint8Array> {
    yield concatBytes(call.header, sealedHead);
    for (let count = 0; count < records; count++) yield call.request.sealData(new Uint8Array(MAX_DATA_BYTES));
  }
  return sendPieces(`${url}/secure/call`, pieces());
}

async function residentBytes(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/u.exec(status)?.[1]) * 1024;
}
