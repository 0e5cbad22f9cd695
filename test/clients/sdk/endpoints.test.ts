/** A device asks where home is by now, and tells whoever keeps its record, only when there is something to tell. */
import { expect, test } from 'vitest';
import type { PairedDevice } from '../../../clients/sdk/index.ts';
import type { PathDescription } from '../../../clients/sdk/transport.ts';
import { Endpoints } from '../../../clients/sdk/endpoints.ts';

const HOUR_MS = 3_600_000;
const rid = Buffer.alloc(15, 7).toString('base64url');
const relays = [{ origin: 'wss://relay.example', rid }];
const near: PathDescription = { kind: 'lan', url: 'http://10.0.0.1:1' };

function start(answers: () => Response | Promise<Response>, path: PathDescription | undefined = near) {
  const moved: PairedDevice[] = [];
  const device = { gatewayName: 'home', deviceKey: 'secret', urls: [near.url], relays: [] } as unknown as PairedDevice;
  let nowMs = 0;
  const asked: string[] = [];
  const endpoints = new Endpoints({
    device,
    now: () => nowMs,
    ask: async (to) => {
      asked.push(to);
      return answers();
    },
    path: () => path,
    onEndpointsChanged: (record) => moved.push(record),
  });
  const settled = () => new Promise(setImmediate);
  return { asked, moved, device, endpoints, settled, later: (ms: number) => (nowMs += ms) };
}
const says = (facts: object) => () =>
  Response.json({ gatewayName: 'home', gatewayId: 'x', urls: [], relays: [], ...facts });

test('once an hour, however often calls are answered', async () => {
  const { asked, endpoints, later } = start(says({}));
  for (let call = 0; call < 5; call++) endpoints.consider();
  later(HOUR_MS - 1);
  endpoints.consider();
  expect(asked).toEqual(['/pair/home']);
  later(1);
  endpoints.consider();
  expect(asked).toHaveLength(2);
});

test('what is as before is not told, in whatever order', async () => {
  const { moved, endpoints, settled } = start(says({ urls: [near.url, near.url] }));
  endpoints.consider();
  await settled();
  expect(moved).toEqual([]);
});

test('a relay and another address are told, beside the address that led there, with all else as it was', async () => {
  const { moved, device, endpoints, settled } = start(
    says({ gatewayName: 'attic', urls: ['http://10.0.0.2:1'], relays }),
  );
  endpoints.consider();
  await settled();
  expect(moved).toEqual([{ ...device, gatewayName: 'attic', urls: ['http://10.0.0.2:1', near.url], relays }]);
});

test('an address that it did not come by, and home does not know, is given up', async () => {
  const { moved, endpoints, settled } = start(says({ relays }), { kind: 'relay', url: 'wss://relay.example' });
  endpoints.consider();
  await settled();
  expect(moved).toMatchObject([{ urls: [], relays }]);
});

test.each([
  ['an older gateway, which does not know', () => Response.json({ error: {} }, { status: 404 })],
  ['junk', () => new Response('…')],
  ['half an answer', says({ relays: [{ origin: 1 }] })],
  ['no answer', () => Promise.reject(new Error('gone'))],
])('%s changes nothing', async (_, answers) => {
  const { moved, endpoints, settled } = start(answers);
  endpoints.consider();
  await settled();
  expect(moved).toEqual([]);
});
