/** Taking a device back: whatever it is in the middle of ends, in words that it can believe, and nothing follows them. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { AnswerEvent } from '../../channel/answer-reader.ts';
import { decodeAbortReason } from '../../channel/head.ts';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { newInvite } from '../support/invites.ts';
import {
  pairRaw,
  rawSession,
  request,
  sendCall,
  startCall,
  startRawSession,
  type PairedRaw,
} from '../support/raw-device.ts';
import { endless } from '../support/request-log.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';

let home: string;
let service: ServiceHere;
let device: PairedRaw;
let session: InitiatorSession;

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
});
afterAll(async () => {
  await service?.stop();
  await removeHome(home);
});
beforeEach(async () => {
  device = await pairRaw(service.url, await newInvite(service));
  session = await rawSession(service.url, device);
});

const url = () => `${service.url}/secure/call`;
const devices = async () => (await service.running.identity.openPairings()).devices;
const endlessRequest = () =>
  request('POST', '/v1/chat/completions', { json: { model: 'foundation', ...endless, stream: true } });

async function rest(
  events: AsyncIterable<AnswerEvent>,
): Promise<{ readonly types: string[]; readonly last: AnswerEvent | undefined }> {
  const all: AnswerEvent[] = [];
  for await (const event of events) all.push(event);
  return { types: all.map(({ type }) => type), last: all.at(-1) };
}

function reasonOf(event: AnswerEvent | undefined): string {
  return event?.type === 'abort' ? decodeAbortReason(event.data).code : `no abort: ${event?.type}`;
}

test.each(['devices', 'keys'] as const)(
  'by %s, a running stream ends with "revoked", and nothing after it',
  async (by) => {
    const running = await startCall(url(), session, endlessRequest());
    expect((await running.events.next()).value).toMatchObject({ type: 'head' });
    const registry = await devices();
    const { kid } = registry.find(device.grant.deviceId)!;
    if (by === 'devices')
      expect(await registry.revoke(device.grant.deviceId)).toEqual({ result: 'revoked', cut: 0, isDurable: true });
    else
      expect(await (await service.running.identity.open()).revoke(kid)).toEqual({
        result: 'revoked',
        cut: 0,
        isDurable: true,
      });
    const { last } = await rest(running.events);
    expect(reasonOf(last)).toBe('revoked');
    expect(service.running.listener.counts().requests).toBe(0);
  },
);

test('a handshake of it is refused at once, and a call of a session that it had', async () => {
  await (await devices()).revoke(device.grant.deviceId);
  expect(await startRawSession(service.url, device)).toEqual({ status: 401, hint: 1 });
  expect(await sendCall(url(), session, request('GET', '/v1/models'))).toMatchObject({ outerStatus: 401, hint: 2 });
});

test('a reader that does not read is cut off, and what it had not taken is dropped', async () => {
  const { call, response } = await startCall(url(), session, request('GET', '/openapi.json'));
  response.pause();
  await (await devices()).revoke(device.grant.deviceId);
  expect(service.running.listener.counts().requests).toBe(0);
  const events: AnswerEvent[] = [];
  for await (const piece of response as AsyncIterable<Buffer>) events.push(...call.answer.push(piece));
  expect(['end', 'abort']).toContain(events.at(-1)!.type);
});

test('others go on', async () => {
  const other = await pairRaw(service.url, await newInvite(service));
  const otherSession = await rawSession(service.url, other);
  const running = await startCall(url(), otherSession, request('GET', '/v1/models'));
  await (await devices()).revoke(device.grant.deviceId);
  const { types } = await rest(running.events);
  expect(types).toEqual(['head', 'data', 'end']);
});

test('paired anew, it is another device, and brings back no other', async () => {
  const other = await pairRaw(service.url, await newInvite(service));
  const registry = await devices();
  await registry.revoke(device.grant.deviceId);
  await registry.revoke(other.grant.deviceId);
  const again = await pairRaw(service.url, await newInvite(service), device.staticKey);
  expect(again.grant.deviceId).not.toBe(device.grant.deviceId);
  expect((await startRawSession(service.url, again)).session).toBeDefined();
  // What it had before is worth nothing: the two can't agree on keys any more.
  await expect(startRawSession(service.url, device)).rejects.toThrow('handshake_refused');
  expect(await startRawSession(service.url, other)).toMatchObject({ hint: 1 });
});

test('the same while the service starts anew', async () => {
  await (await devices()).revoke(device.grant.deviceId);
  await service.stop();
  service = await startServiceHere(home);
  expect(await startRawSession(service.url, device)).toEqual({ status: 401, hint: 1 });
});

test('its end of the service is told to a device in the middle of a stream', async () => {
  const running = await startCall(url(), session, endlessRequest());
  await running.events.next();
  await service.stop(AbortSignal.abort());
  expect(reasonOf((await rest(running.events)).last)).toBe('shutdown');
  service = await startServiceHere(home);
});
