/** One request with an access key, at a server that asks for one, against the same request at a server that does not. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openConnection, request, type Connection } from './http-client.ts';
import { startService, type Service } from './processes.ts';

const BATCHES = 40;
const TURNS = 100;
const PATH = '/v1/models';

/** Microseconds for one request in the fastest batch of each kind; the batches are interleaved. */
export async function measureKeyedRequests(): Promise<{ readonly withKeyUs: number; readonly withoutUs: number }> {
  const settings = { 'access.requireKeyOnLoopback': true, 'access.requestsPerMinute': 1_000_000 };
  const [keyed, open] = [await startService({ settings }), await startService()];
  const [toKeyed, toOpen] = [await openConnection(keyed.port), await openConnection(open.port)];
  const [withKey, without] = [
    request('GET', PATH, undefined, { 'x-api-key': await makeKey(keyed) }),
    request('GET', PATH),
  ];
  let [withKeyUs, withoutUs] = [Infinity, Infinity];
  for (let batch = 0; batch < BATCHES; batch += 1) {
    withKeyUs = Math.min(withKeyUs, await perRequestUs(toKeyed, withKey));
    withoutUs = Math.min(withoutUs, await perRequestUs(toOpen, without));
  }
  for (const connection of [toKeyed, toOpen]) connection.close();
  for (const service of [keyed, open]) await service.stop();
  return { withKeyUs, withoutUs };
}

async function perRequestUs(connection: Connection, bytes: Buffer): Promise<number> {
  const startedAtMs = performance.now();
  for (let turn = 0; turn < TURNS; turn += 1) await connection.exchange(bytes);
  return ((performance.now() - startedAtMs) * 1000) / TURNS;
}

async function makeKey({ port, home }: Service): Promise<string> {
  const runToken = /"token":"([^"]+)"/.exec(await readFile(join(home, 'run.json'), 'utf8'))?.[1] ?? '';
  const response = await fetch(`http://127.0.0.1:${port}/admin/keys`, {
    method: 'POST',
    headers: { 'x-postern-run-token': runToken, 'content-type': 'application/json' },
    body: '{}',
  });
  const token = /"token":"([^"]+)"/.exec(await response.text())?.[1];
  if (token === undefined) throw new Error(`the server made no key: ${response.status}`);
  return token;
}
