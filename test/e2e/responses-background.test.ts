/** Open Responses in the background: by the official OpenAI client, which leaves and comes back. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import OpenAI from 'openai';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { BACKGROUND_OF_AN_OWNER } from '../../gateway/routes/responses/background.ts';
import { createKey, setSettings } from '../support/access-keys.ts';
import { expectValidResponse, validEvents } from '../support/openresponses.ts';
import { endless } from '../support/request-log.ts';
import { runCli, startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const model = 'foundation';
const { schema } = endless.response_format.json_schema;
/** An answer that doesn't end by itself within the test. */
const LONG = { model, input: 'Hello', text: { format: { type: 'json_schema' as const, name: 'long', schema } } };

function clientOf({ url }: TestServer, apiKey = 'any'): OpenAI {
  return new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });
}

const ended = (client: OpenAI, id: string) =>
  until(async () => {
    const response = await client.responses.retrieve(id);
    expectValidResponse(response);
    return response.status !== 'queued' && response.status !== 'in_progress' && response;
  });

const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => expect.unreachable(),
    (error: unknown) => error,
  );

describe('a response that is made in the background', () => {
  let server: TestServer;
  let openai: OpenAI;
  beforeAll(async () => {
    server = await startServer();
    openai = clientOf(server);
  });
  afterAll(() => server.stop());

  const textOf = async (path: string) => (await fetch(`${server.url}/v1/responses/${path}`)).text();

  test('is answered at once, and done when its client comes back', async () => {
    const begun = await openai.responses.create({ model, input: 'My name is Alice.', background: true });
    expectValidResponse(begun);
    expect(begun).toMatchObject({ status: 'queued', background: true, output: [], usage: null });
    const done = await ended(openai, begun.id);
    expect(done).toMatchObject({ id: begun.id, status: 'completed', background: true });
    const next = await openai.responses.create({ model, previous_response_id: begun.id, input: 'What is my name?' });
    expect(next.output_text).toBe('Your name is Alice.');
    const log = (await (await fetch(`${server.url}/admin/requests`)).json()) as {
      requests: { output_tokens: number }[];
    };
    expect(log.requests.some((row) => row.output_tokens === done.usage?.output_tokens)).toBe(true);
  });

  test('goes on when its client leaves the stream, which is taken up where it was', async () => {
    const body = { model, input: 'Count from 1 to 20.', background: true };
    const stream = await openai.responses.create({ ...body, stream: true });
    const seen: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const event of stream) {
      seen.push(event);
      if (event.type === 'response.output_text.delta') break;
    }
    const [first] = seen;
    if (first?.type !== 'response.created') return expect.unreachable();
    const { id } = first.response;
    const last = seen.at(-1)!.sequence_number;
    const rest = await openai.responses.retrieve(id, { stream: true, starting_after: last });
    for await (const event of rest) seen.push(event);
    expect(seen.map((event) => event.sequence_number)).toEqual([...seen.keys()]);
    expect(seen.map((event) => event.type).slice(0, 4)).toEqual([
      'response.created',
      'response.queued',
      'response.in_progress',
      'response.output_item.added',
    ]);
    const text = seen.flatMap((event) => (event.type === 'response.output_text.delta' ? [event.delta] : [])).join('');
    expect(text).toBe('1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20');
    const again = validEvents(await textOf(`${id}?stream=true`));
    expect(again).toEqual(seen);
    expect(await textOf(`${id}?stream=true&starting_after=${again.length - 2}`)).toMatch(
      /^event: response\.completed\n.*\n\ndata: \[DONE\]\n\n$/,
    );
  });

  test('ends when it is cancelled, and says so as often as it is asked', async () => {
    const stream = await openai.responses.create({ ...LONG, background: true, stream: true });
    let id = '';
    const types: string[] = [];
    for await (const event of stream) {
      types.push(event.type);
      if (event.type === 'response.created') id = event.response.id;
      const isText = event.type === 'response.output_text.delta';
      if (isText && types.filter((type) => type === event.type).length === 3) {
        expect(await openai.responses.retrieve(id)).toMatchObject({ status: 'in_progress' });
        expect(await openai.responses.cancel(id)).toMatchObject({ id, status: 'cancelled', error: null });
      }
    }
    expect(types.at(-1)).toBe('response.incomplete');
    const cancelled = await openai.responses.cancel(id);
    expectValidResponse(cancelled);
    expect(await openai.responses.retrieve(id)).toMatchObject(cancelled);
    expect(validEvents(await textOf(`${id}?stream=true`)).map(({ type }) => type)).toEqual(types);
    // One call at a time: this one has an answer only when the other is over.
    const other = await openai.responses.create({ model, input: 'Hello' });
    expect(await refused(openai.responses.cancel(other.id))).toMatchObject({ status: 400 });
    expect(await refused(openai.responses.cancel('resp_nope'))).toMatchObject({ status: 404 });
  });

  test('that is deleted ends, too', async () => {
    const { id } = await openai.responses.create({ ...LONG, background: true });
    await openai.responses.delete(id);
    expect(await refused(openai.responses.retrieve(id))).toMatchObject({ status: 404 });
    expect((await openai.responses.create({ model, input: 'Hello' })).status).toBe('completed');
  });

  test('that fails says why, and one that is not done is not gone on from', async () => {
    const long = await openai.responses.create({ ...LONG, background: true });
    const next = openai.responses.create({ model, input: 'x', previous_response_id: long.id });
    expect(await refused(next)).toMatchObject({ status: 400, param: 'previous_response_id' });
    const { id } = await openai.responses.create({ model, input: 'word '.repeat(5000), background: true });
    await openai.responses.cancel(long.id);
    expect(await ended(openai, id)).toMatchObject({ status: 'failed', error: { code: 'context_length_exceeded' } });
    const types = validEvents(await textOf(`${id}?stream=true`)).map(({ type }) => type);
    expect(types).toEqual(['response.created', 'response.queued', 'response.failed']);
  });

  test('is one of a few, and is stored', async () => {
    const begun = await Promise.all(
      Array.from({ length: BACKGROUND_OF_AN_OWNER }, () => openai.responses.create({ ...LONG, background: true })),
    );
    expect(await refused(openai.responses.create({ ...LONG, background: true }))).toMatchObject({ status: 429 });
    await Promise.all(begun.map(({ id }) => openai.responses.cancel(id)));
    expect(await refused(openai.responses.create({ ...LONG, background: true, store: false }))).toMatchObject({
      status: 400,
      param: 'background',
    });
    const page = { origin: 'https://a-page.example', 'content-type': 'application/json' };
    const asked = await fetch(`${server.url}/v1/responses`, {
      method: 'POST',
      headers: page,
      body: JSON.stringify({ ...LONG, background: true }),
    });
    expect(asked.status).toBe(400);
  });
});

describe('of what goes on in the background', () => {
  let home: string;
  let server: TestServer;
  beforeEach(async () => {
    home = await mkdtemp(join(tmpdir(), 'postern-background-'));
  });
  afterEach(async () => {
    await server.stop();
    await rm(home, { recursive: true, force: true });
  });

  test('nothing is left in doubt by kill -9: it has failed', async () => {
    server = await startServer({ home });
    const { id } = await clientOf(server).responses.create({ ...LONG, background: true });
    await until(async () => (await clientOf(server).responses.retrieve(id)).status === 'in_progress');
    const exited = once(server.process, 'exit');
    server.process.kill('SIGKILL');
    await exited;
    server = await startServer({ home });
    const failed = await clientOf(server).responses.retrieve(id);
    expectValidResponse(failed);
    expect(failed).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    expect(failed).toMatchObject(await clientOf(server).responses.cancel(id));
  });

  test('what a key began ends when that is revoked, and is no other key’s to see', async () => {
    await setSettings(home, { 'access.requireKeyOnLoopback': true });
    const [key, other] = [await createKey(home), await createKey(home)];
    server = await startServer({ home });
    const { id } = await clientOf(server, key.token).responses.create({ ...LONG, background: true });
    for (const attempt of ['retrieve', 'cancel', 'delete'] as const) {
      expect(await refused(clientOf(server, other.token).responses[attempt](id))).toMatchObject({ status: 404 });
    }
    await until(async () => (await clientOf(server, key.token).responses.retrieve(id)).status === 'in_progress');
    expect(await runCli(['keys', 'revoke', key.id], { SVC_HOME: home })).toMatchObject({ code: 0 });
    const headers = { 'x-postern-run-token': await server.runToken() };
    const status = (await (await fetch(`${server.url}/admin/status`, { headers })).json()) as { inflight: object };
    expect(status.inflight).toEqual({});
  });
});
