/** Another process that holds the database, as a backup or a command of the owner's may: the service goes on without. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { post, readLog, user } from '../support/request-log.ts';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
let server: TestServer;
let other: Sqlite.Database;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'postern-locked-'));
  server = await startServer({ home });
  await until(() => server.log().includes('Secrets are in'));
  await post(server, '/v1/chat/completions', { ...user('Say: yes'), max_tokens: 1 });
  other = new Sqlite(join(home, 'state.db'));
});
afterAll(async () => {
  other.close();
  await server.stop();
  await rm(home, { recursive: true, force: true });
});

/** Runs it while no process but this one can write. */
async function locked<Result>(run: () => Promise<Result>): Promise<Result> {
  other.exec('BEGIN IMMEDIATE');
  return run().finally(() => other.exec('ROLLBACK'));
}

async function asOwner(method: string, path: string, body: object): Promise<Response> {
  const headers = { 'x-postern-run-token': await server.runToken(), 'content-type': 'application/json' };
  return fetch(`${server.url}${path}`, { method, headers, body: JSON.stringify(body) });
}

// It held each answer back for five seconds, and everybody else with it.
const WELL_BEFORE_100_SECONDS = 30_000;

describe('Another process holds the database', () => {
  test(
    'answers and streams go on, and the log has all of them when it lets go',
    async () => {
      const stream = await locked(async () => {
        for (let question = 0; question < 20; question += 1) {
          expect((await fetch(`${server.url}/v1/models?locked`)).status).toBe(200);
        }
        const answer = await post(server, '/v1/chat/completions', { ...user('Say: yes'), max_tokens: 3, stream: true });
        return answer.text();
      });
      expect(stream).toContain('[DONE]');
      const logged = await until(async () => {
        const { requests } = await readLog(server, 'limit=100');
        return requests.some(({ path }) => path === '/v1/chat/completions') && requests.length > 20
          ? requests
          : undefined;
      });
      expect(logged.filter(({ path }) => path === '/v1/models')).toHaveLength(20);
      expect(logged.map(({ id }) => id)).toEqual(logged.map(({ id }) => id).toSorted((a, b) => b - a));
    },
    WELL_BEFORE_100_SECONDS,
  );

  test('what has to be kept is refused with the time to try again, and works then', async () => {
    const refused = await locked(() => asOwner('POST', '/admin/keys', { label: 'laptop' }));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    expect(await refused.text()).toContain('storage_unavailable');
    await until(async () => (await asOwner('POST', '/admin/keys', { label: 'laptop' })).ok);
  });

  test('what waits for the log is written when the service ends', async () => {
    await locked(async () => fetch(`${server.url}/v1/models?last`));
    await server.stop();
    const row = other.prepare("SELECT count(*) AS rows FROM requests WHERE path = '/v1/models'").get();
    expect(row).toEqual({ rows: 21 });
  });
});
