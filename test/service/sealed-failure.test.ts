/** A sealed call that fails inside the service: its device is told to look at the log, and the log says what failed. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { InitiatorSession } from '../../channel/initiator.ts';
import { newInvite } from '../support/invites.ts';
import { pairRaw, rawSession, request, sendCall } from '../support/raw-device.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from '../support/service-here.ts';

let home: string;
let service: ServiceHere;
let session: InitiatorSession;

beforeAll(async () => {
  home = await temporaryHome();
  service = await startServiceHere(home);
  session = await rawSession(service.url, await pairRaw(service.url, await newInvite(service)));
});
afterAll(async () => {
  await service.stop();
  await removeHome(home);
});

test('before its route begins, and outside of all routes: kind and place are said, and never the message', async () => {
  const { database } = service.running;
  const ask = () => sendCall(`${service.url}/secure/call`, session, request('OPTIONS', '/v1/models'));
  database.exec('DROP TABLE sealed_actions');
  expect((await ask()).head).toMatchObject({ status: 500 });
  expect(service.said.at(-1)).toMatch(/^request failed: \{"code":"internal","kind":"SqliteError","at":\[.*idempotency/);
  database.exec('DROP TABLE devices');
  expect((await ask()).abort).toMatchObject({ code: 'internal_error' });
  expect(service.said.at(-1)).toMatch(/^a sealed call failed: \{"kind":"SqliteError","at":\[.*device-registry/);
  expect(service.said.join('\n')).not.toContain('no such table');
});
