/**
 * The scenarios of the Open Responses compliance suite (github.com/openresponses/openresponses, `src/lib/compliance-tests.ts`),
 * by the names that they have there, against the published schemas. Their code is not here: what each asks and expects is.
 */
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import {
  expectValidCompaction,
  expectValidEvent,
  expectValidResponse,
  expectValidSocketError,
  validEvents,
  type StreamEvent,
} from '../support/openresponses.ts';
import { startServer, type TestServer } from '../support/server.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.stop());

const model = 'foundation';
const message = (role: string, content: unknown, fields: object = {}) => ({
  type: 'message',
  role,
  content,
  ...fields,
});
const weather = {
  type: 'function',
  name: 'get_weather',
  description: 'Get the current weather for a location',
  parameters: { type: 'object', properties: { location: { type: 'string' } }, required: ['location'] },
};

const post = (path: string, body: object) =>
  fetch(`${server.url}/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer any' },
    body: JSON.stringify(body),
  });

async function expectCompleted(body: object): Promise<void> {
  const answer = (await (await post('/responses', { model, ...body })).json()) as { status: string; output: unknown[] };
  expectValidResponse(answer);
  expect(answer.status).toBe('completed');
  expect(answer.output.length).toBeGreaterThan(0);
}

interface SocketError {
  readonly type: 'error';
  readonly error: { readonly code: string };
}
type Turn = (turns: readonly StreamEvent[]) => object;

/** One connection, one turn after the other. @returns what each of them ended with */
async function talk(...turns: readonly Turn[]): Promise<(StreamEvent | SocketError)[]> {
  const socket = new WebSocket(`${server.url.replace('http', 'ws')}/v1/responses`, {
    headers: { authorization: 'Bearer any' },
  });
  await once(socket, 'open');
  const ends: (StreamEvent | SocketError)[] = [];
  try {
    for (const turn of turns) {
      const ended = endOf(socket);
      const body = turn(ends.filter((end): end is StreamEvent => 'response' in end));
      socket.send(JSON.stringify({ type: 'response.create', model, ...body }));
      ends.push(await ended);
    }
  } finally {
    socket.close();
  }
  return ends;
}

function endOf(socket: WebSocket): Promise<StreamEvent | SocketError> {
  return new Promise((resolve, reject) => {
    const hear = (data: Buffer): void => {
      const event = JSON.parse(data.toString()) as StreamEvent | SocketError;
      if (event.type === 'error') expectValidSocketError(event);
      else expectValidEvent(event);
      if (!/^(error|response\.(completed|incomplete|failed))$/.test(event.type)) return;
      socket.off('message', hear);
      resolve(event);
    };
    socket.on('message', hear);
    socket.once('close', () => reject(new Error('the connection was closed')));
  });
}

const completed = { type: 'response.completed', response: { status: 'completed' } };
const notFound = { type: 'error', error: { code: 'previous_response_not_found' } };

describe('the scenarios of the compliance suite', () => {
  test('basic-response', () => expectCompleted({ input: [message('user', 'Say hello in exactly 3 words.')] }));

  test('assistant-phase', () =>
    expectCompleted({
      input: [
        message('assistant', 'I should answer with the saved number.', { phase: 'commentary' }),
        message('assistant', 'The number is four.', { phase: 'final_answer' }),
        message('user', 'Repeat only the number.'),
      ],
    }));

  test('response-output-phase-schema', async () => {
    // The suite looks at a response of its own; here one that was given phases keeps them.
    const input = [message('assistant', 'Four.', { phase: 'final_answer' }), message('user', 'Hello')];
    const { id } = (await (await post('/responses', { model, input })).json()) as { id: string };
    const items = await fetch(`${server.url}/v1/responses/${id}/input_items?order=asc`);
    expect(await items.json()).toMatchObject({
      data: [{ role: 'assistant', phase: 'final_answer' }, { role: 'user' }],
    });
  });

  test('streaming-response', async () => {
    const body = { model, input: [message('user', 'Count from 1 to 5.')], stream: true };
    expect(validEvents(await (await post('/responses', body)).text()).at(-1)).toMatchObject(completed);
  });

  test('system-prompt', () =>
    expectCompleted({ input: [message('system', 'You are a pirate.'), message('user', 'Say hello.')] }));

  test('tool-calling', async () => {
    const input = [message('user', "What's the weather like in San Francisco?")];
    const answer = await (await post('/responses', { model, input, tools: [weather] })).json();
    expectValidResponse(answer);
    expect(answer).toMatchObject({ output: [{ type: 'function_call', name: 'get_weather' }] });
  });

  test('image-input: refused by name, for a model that reads no images', async () => {
    const image = { type: 'input_image', image_url: 'data:image/png;base64,iVBORw0KGgo=' };
    const input = [message('user', [{ type: 'input_text', text: 'What do you see?' }, image])];
    const reply = await post('/responses', { model, input });
    expect(reply.status).toBe(400);
    expect(await reply.json()).toMatchObject({ error: { param: 'input', message: expect.stringContaining('image') } });
  });

  test('multi-turn', () =>
    expectCompleted({
      input: [
        message('user', 'My name is Alice.'),
        message('assistant', 'Hello Alice!'),
        message('user', 'What is my name?'),
      ],
    }));

  test('compact-response', async () => {
    const input = [message('user', 'We launch on Tuesday.'), message('assistant', 'Understood.')];
    const compacted = await (await post('/responses/compact', { model, prompt_cache_key: 'a', input })).json();
    expectValidCompaction(compacted);
    expect(compacted).toMatchObject({
      object: 'response.compaction',
      output: [{ type: 'message' }, { type: 'compaction' }],
    });
  });

  test('compact-missing-model', async () => {
    expect((await post('/responses/compact', { input: [message('user', 'Compact.')] })).status).toBe(400);
  });

  test('websocket-response', async () => {
    expect(await talk(() => ({ input: [message('user', 'Count from 1 to 3.')] }))).toMatchObject([completed]);
  });

  test('websocket-sequential-responses', async () => {
    const turn = () => ({ store: false, input: 'Hello' });
    expect(await talk(turn, turn)).toMatchObject([completed, completed]);
  });

  test('websocket-continuation', async () => {
    const [, second] = await talk(
      () => ({ store: false, input: 'My name is Alice.' }),
      ([first]) => ({ store: false, previous_response_id: first!.response!.id, input: 'What is my name?' }),
    );
    expect(second).toMatchObject(completed);
    const [item] = (second as StreamEvent).response!.output;
    expect(item?.content).toMatchObject([{ text: 'Your name is Alice.' }]);
  });

  test('websocket-reconnect-store-false-recovery', async () => {
    const [first] = await talk(() => ({ store: false, input: 'My name is Alice.' }));
    const { id } = (first as StreamEvent).response!;
    const again = await talk(
      () => ({ store: false, previous_response_id: id, input: 'What is my name?' }),
      () => ({ store: false, input: 'Hello' }),
    );
    expect(again).toMatchObject([notFound, completed]);
  });

  test('websocket-previous-response-not-found', async () => {
    const turn = () => ({ store: false, previous_response_id: 'resp_missing', input: 'Hello' });
    expect(await talk(turn)).toMatchObject([notFound]);
  });

  test('websocket-failed-continuation-evicts-cache', async () => {
    const output = { type: 'function_call_output', call_id: 'call_missing', output: 'No call was made.' };
    const [first, failed, retried] = await talk(
      () => ({ store: false, input: 'Hello' }),
      ([one]) => ({ store: false, previous_response_id: one!.response!.id, input: [output] }),
      ([one]) => ({ store: false, previous_response_id: one!.response!.id, input: 'Hello' }),
    );
    expect([first, failed, retried]).toMatchObject([completed, { type: 'error' }, notFound]);
  });

  test('websocket-compact-new-chain', async () => {
    const input = [message('user', 'Remember: slate.'), message('assistant', 'OK.'), message('user', 'Compress this.')];
    const { output } = (await (await post('/responses/compact', { model, input })).json()) as { output: object[] };
    const body = { store: false, input: [...output, message('user', 'Continue from here.')], tools: [] };
    expect(await talk(() => body)).toMatchObject([completed]);
  });
});
