/** The approval queue from outside: over HTTP, as its owner's programs and as those that have no business with it. */
import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readServerEvents, type ServerEvent } from '../../cli/server-events.ts';
import {
  removeHome,
  startApprovalsService,
  temporaryHome,
  type ApprovalsService,
} from '../support/approvals-service.ts';
import { startServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
let service: ApprovalsService;

beforeEach(async () => {
  home = await temporaryHome();
  service = await startApprovalsService(home);
});
afterEach(async () => {
  await service.stop();
  await removeHome(home);
});

const get = (path: string, init: RequestInit = {}) => fetch(`${service.url}${path}`, init);
const decide = (id: string, body: unknown, init: RequestInit = {}) =>
  get(`/admin/approvals/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    ...init,
  });
const listed = async () =>
  ((await (await get('/admin/approvals')).json()) as { approvals: { id: string }[] }).approvals;
const errorOf = async (response: Response) =>
  ((await response.json()) as { error: { message: string; code: string } }).error;

interface Watching {
  readonly events: ServerEvent[];
  /** Fulfilled when the server ends the stream. */
  readonly ended: Promise<void>;
  readonly leave: () => void;
}

async function watch(): Promise<Watching> {
  const leaving = new AbortController();
  const response = await get('/admin/events', { signal: leaving.signal });
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
  const events: ServerEvent[] = [];
  const ended = (async () => {
    for await (const event of readServerEvents(response.body!)) events.push(event);
  })();
  // A test that ends leaves in the middle.
  ended.catch(() => undefined);
  await until(() => events.length > 0);
  return { events, ended, leave: () => leaving.abort() };
}

describe('what waits', () => {
  test('is listed, the oldest first, with a code where there is one', async () => {
    expect(await listed()).toEqual([]);
    const tool = service.ask();
    const pairing = service.ask({ kind: 'pairing', summary: 'a tablet', code: '471902', lifetimeMs: 60_000 });
    expect(await listed()).toEqual([
      {
        id: tool.approval.id,
        kind: 'tool_permission',
        summary: 'run "ls"',
        created_at: new Date(tool.approval.createdAt).toISOString(),
        expires_at: new Date(tool.approval.expiresAt).toISOString(),
      },
      expect.objectContaining({ id: pairing.approval.id, kind: 'pairing', code: '471902' }),
    ]);
    expect(await (await get('/admin/status')).json()).toMatchObject({ approvals_waiting: 2 });
    expect(await (await get('/v1/admin/approvals')).json()).toEqual({ approvals: await listed() });
  });

  test.each([
    ['approve', 'approved'],
    ['deny', 'denied'],
  ])('hears "%s"', async (decision, outcome) => {
    const asked = service.ask();
    const answer = await decide(asked.approval.id, { decision });
    expect(answer.status).toBe(200);
    expect(await answer.json()).toEqual({ id: asked.approval.id, outcome });
    expect(await asked.outcome).toBe(outcome);
    expect(await listed()).toEqual([]);
  });

  test('is settled once: the second word hears of the first', async () => {
    const asked = service.ask();
    await decide(asked.approval.id, { decision: 'deny' });
    const late = await decide(asked.approval.id, { decision: 'approve' });
    expect(late.status).toBe(409);
    expect(await errorOf(late)).toMatchObject({
      code: 'approval_settled',
      message: expect.stringContaining('was denied'),
    });
    expect(await asked.outcome).toBe('denied');
  });

  test('of many words at once one counts', async () => {
    const asked = service.ask();
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) => decide(asked.approval.id, { decision: at % 2 === 0 ? 'approve' : 'deny' })),
    );
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(1);
    expect(statuses.filter((status) => status === 409)).toHaveLength(19);
  });

  test('is a no once its time is over, whatever comes after', async () => {
    const asked = service.ask({ lifetimeMs: 1 });
    expect(await asked.outcome).toBe('expired');
    const late = await decide(asked.approval.id, { decision: 'approve' });
    expect(late.status).toBe(409);
    expect((await errorOf(late)).message).toContain('time ran out');
  });

  test('with a code is not approved here, only denied', async () => {
    const asked = service.ask({ kind: 'pairing', code: '471902' });
    const answer = await decide(asked.approval.id, { decision: 'approve' });
    expect(answer.status).toBe(409);
    expect(await errorOf(answer)).toMatchObject({
      code: 'approval_needs_code',
      message: expect.stringContaining('on the device'),
    });
    expect(await listed()).toHaveLength(1);
    expect((await decide(asked.approval.id, { decision: 'deny' })).status).toBe(200);
  });

  test.each(['anonymous', '%2e%2e', '__proto__', '0'.repeat(500), '%00', 'ID', '*'])('has no id "%s"', async (id) => {
    const asked = service.ask();
    const answer = await decide(id, { decision: 'approve' });
    expect(answer.status).toBe(404);
    expect(await listed()).toEqual([expect.objectContaining({ id: asked.approval.id })]);
  });

  test.each([
    '',
    '{',
    'null',
    '[]',
    '"approve"',
    '{}',
    '{"decision":"approved"}',
    '{"decision":"APPROVE"}',
    '{"decision":true}',
    '{"decision":["approve"]}',
    '{"decision":"approve","id":"x"}',
    `{"decision":"approve","x":${'['.repeat(200)}${']'.repeat(200)}}`,
  ])('takes %j for no word at all', async (body) => {
    const asked = service.ask();
    expect((await decide(asked.approval.id, body)).status).toBe(400);
    expect(await listed()).toHaveLength(1);
  });

  test('takes no body over the bound, and no form of a web page', async () => {
    const { id } = service.ask().approval;
    expect((await decide(id, 'x'.repeat(70_000))).status).toBe(413);
    const form = { headers: { 'content-type': 'application/x-www-form-urlencoded' } };
    expect((await decide(id, { decision: 'approve' }, form)).status).toBe(415);
    expect(await listed()).toHaveLength(1);
  });
});

describe('who has no business here', () => {
  const strangers: readonly (readonly [string, Record<string, string>])[] = [
    ['a web page', { origin: 'https://evil.example' }],
    ['a page in a sandbox', { origin: 'null' }],
    ['a page that loads it as a picture', { 'sec-fetch-site': 'cross-site' }],
    ['our own page without the token of the run', { 'sec-fetch-site': 'same-origin' }],
    ['a forwarded request', { 'x-forwarded-for': '127.0.0.1' }],
    ['a tunnel', { 'cf-connecting-ip': '203.0.113.5' }],
    ['a rebound name', { host: 'evil.example' }],
  ];

  /** `fetch` does not let a test lie about `Host`. */
  const statusOf = (method: string, path: string, headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const request = httpRequest(`${service.url}${path}`, { method, headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
        if (response.statusCode === 200) request.destroy();
      });
      request.on('error', reject);
      request.end(method === 'POST' ? '{"decision":"approve"}' : undefined);
    });

  test.each(strangers)('%s neither reads nor decides', async (_who, headers) => {
    const { approval } = service.ask();
    expect(await statusOf('GET', '/admin/approvals', headers)).toBe(403);
    expect(await statusOf('GET', '/admin/events', headers)).toBe(403);
    expect(await statusOf('POST', `/admin/approvals/${approval.id}`, headers)).toBe(403);
    expect(await statusOf('POST', '/v1/api/admin/approvals/nobody', headers)).toBe(403);
    expect(await listed()).toHaveLength(1);
  });
});

describe('events', () => {
  test('begin with what waits, and go on with all that comes and ends', async () => {
    const first = service.ask();
    const { events, leave } = await watch();
    const second = service.ask({ kind: 'pairing', summary: 'line\nbreak', code: '000001' });
    await decide(first.approval.id, { decision: 'deny' });
    second.confirmCode();
    await until(() => events.length === 4);
    expect(events).toMatchObject([
      { name: 'approval.snapshot', data: { approvals: [{ id: first.approval.id }] } },
      {
        name: 'approval.added',
        data: { approval: { id: second.approval.id, code: '000001', summary: 'line\ufffdbreak' } },
      },
      { name: 'approval.settled', data: { approval: { id: first.approval.id }, outcome: 'denied' } },
      { name: 'approval.settled', data: { approval: { id: second.approval.id }, outcome: 'approved' } },
    ]);
    leave();
  });

  test('of all that may wait at once reach a reader that reads', async () => {
    const { events, leave } = await watch();
    const summary = '😀"'.repeat(500);
    const asked = Array.from({ length: 100 }, () => service.ask({ summary, lifetimeMs: 60_000 }));
    for (const { approval } of asked) service.running.approvals.decide(approval.id, 'denied');
    await until(() => events.length === 201);
    leave();
  });

  test('are for sixteen at once; who leaves makes room', async () => {
    const watching = await Promise.all(Array.from({ length: 16 }, () => watch()));
    const refused = await get('/admin/events');
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).not.toBeNull();
    expect((await errorOf(refused)).message).toContain('Stop one');
    watching[0]!.leave();
    await until(async () => {
      const again = await get('/admin/events', { method: 'HEAD' });
      return again.status === 200;
    });
    for (const { leave } of watching) leave();
  });

  test('asked for by HEAD hold no place', async () => {
    for (let turn = 0; turn < 40; turn += 1) {
      expect((await get('/admin/events', { method: 'HEAD' })).status).toBe(200);
    }
    (await watch()).leave();
  });

  test('do not pile up for a reader that never reads: it is cut off', async () => {
    const { listener, approvals } = service.running;
    const socket = connect(service.running.port, '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write('GET /admin/events HTTP/1.1\r\nhost: localhost\r\n\r\n');
    socket.pause();
    await until(() => listener.counts().requests === 1);
    const summary = 'x'.repeat(1000);
    await until(() => {
      for (let turn = 0; turn < 100; turn += 1) approvals.decide(service.ask({ summary }).approval.id, 'denied');
      return listener.counts().requests === 0;
    });
    socket.destroy();
    const { events, leave } = await watch();
    expect(events).toMatchObject([{ name: 'approval.snapshot', data: { approvals: [] } }]);
    leave();
  });

  /** Until so many have come. @returns each with its id, as it stands on the wire */
  async function readRaw(count: number, headers: Record<string, string> = {}): Promise<readonly string[]> {
    const leaving = new AbortController();
    const response = await get('/admin/events', { headers, signal: leaving.signal });
    let text = '';
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.split('\n\n').length > count) break;
    }
    leaving.abort();
    return text.split('\n\n').slice(0, count);
  }
  const idOf = (event: string): string => /^id: (\S+)$/m.exec(event)![1]!;
  const nameOf = (event: string): string => /^event: (\S+)$/m.exec(event)![1]!;

  test('go on where a reader that comes back says it was', async () => {
    const reading = readRaw(2);
    await until(() => service.running.listener.counts().requests === 1);
    const first = service.ask();
    const [snapshot = '', added = ''] = await reading;
    expect([nameOf(snapshot), snapshot.includes('id: '), nameOf(added)]).toEqual([
      'approval.snapshot',
      false,
      'approval.added',
    ]);
    await decide(first.approval.id, { decision: 'deny' });
    const second = service.ask();
    const missed = await readRaw(2, { 'last-event-id': idOf(added) });
    expect(missed.map(nameOf)).toEqual(['approval.settled', 'approval.added']);
    expect(missed[0]).toContain(first.approval.id);
    expect(missed[1]).toContain(second.approval.id);
  });

  test.each(['', 'nobody', '1', 'x'.repeat(5000)])(
    'begin anew for a reader that names one that never was: %.10j',
    async (id) => {
      service.ask();
      const [event = ''] = await readRaw(1, { 'last-event-id': id });
      expect(nameOf(event)).toBe('approval.snapshot');
    },
  );

  test('end with the service, after a no for all that waited', async () => {
    const asked = service.ask();
    const { events, ended } = await watch();
    const stopped = service.stop();
    await ended;
    await stopped;
    expect(await asked.outcome).toBe('cancelled');
    expect(events.at(-1)).toMatchObject({ name: 'approval.settled', data: { outcome: 'cancelled' } });
  });
});

test('the service that users start has all of it, and stops though somebody watches', async () => {
  const server = await startServer();
  expect(await (await fetch(`${server.url}/admin/approvals`)).json()).toEqual({ approvals: [] });
  const events = await fetch(`${server.url}/admin/events`);
  const { value } = await events.body!.getReader().read();
  expect(new TextDecoder().decode(value)).toBe('event: approval.snapshot\ndata: {"approvals":[]}\n\n');
  await server.stop();
  expect(server.process.exitCode).toBe(0);
});
