/** What happens to a model runner: it is killed, its client leaves, its model is broken or replaced by another. */
import { copyFile, mkdtemp, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const foundation = fileURLToPath(new URL('../../models/foundation/foundation.gguf', import.meta.url));

let server: TestServer;
let modelsDir: string;

beforeAll(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'postern-models-'));
  await copyFile(foundation, join(modelsDir, 'second.gguf'));
  await mkdir(join(modelsDir, 'org', 'repo'), { recursive: true });
  await copyFile(foundation, join(modelsDir, 'org', 'repo', 'third-Q8_0.gguf'));
  await symlink(foundation, join(modelsDir, 'linked.gguf'));
  await symlink(join(modelsDir, 'nowhere'), join(modelsDir, 'dangling.gguf'));
  await writeFile(join(modelsDir, 'mmproj-second.gguf'), 'a part of another model');
  await writeFile(join(modelsDir, 'broken.gguf'), 'GGUF and then nonsense');
  await writeFile(join(modelsDir, 'notes.txt'), 'not a model');
  server = await startServer({ modelsDir });
});
afterAll(async () => {
  await server?.stop();
  await rm(modelsDir, { recursive: true, force: true });
});

const chat = (fields: object, signal?: AbortSignal) =>
  fetch(`${server.url}/v1/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ model: 'foundation', messages: [{ role: 'user', content: 'Hello' }], ...fields }),
    ...(signal === undefined ? {} : { signal }),
  });

interface Health {
  loaded: string[];
  inflight: Record<string, { running: number; queued: number }>;
  http_inflight: number;
}
const health = async () => (await (await fetch(`${server.url}/health`)).json()) as Health;
const idle = () => until(async () => Object.keys((await health()).inflight).length === 0);

/** A grammar that can't end early: thousands of tokens, so that there is a middle to stop in. */
const endless = {
  stream: true,
  response_format: {
    type: 'json_schema',
    json_schema: { name: 'long', schema: { type: 'array', items: { type: 'string', minLength: 50 }, minItems: 1000 } },
  },
};

async function runnerPid(): Promise<number> {
  const children = await readFile(`/proc/${server.process.pid}/task/${server.process.pid}/children`, 'utf8');
  return Number(children.trim().split(' ').at(-1));
}

describe('SIGKILL on a runner', () => {
  test('in mid-stream: a clean in-band error, then the next request works, and the gateway never blinked', async () => {
    const response = await chat(endless);
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = (await reader.read()).value ?? '';
    process.kill(await runnerPid(), 'SIGKILL');
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
    const events = text.trimEnd().split('\n\n');
    expect(events).not.toContain('data: [DONE]');
    const { error } = JSON.parse(events.at(-1)!.replace('data: ', '')) as { error: { type: string; message: string } };
    expect(error).toMatchObject({ type: 'internal_error', message: expect.stringContaining('SIGKILL') });
    expect((await health()).loaded).toEqual([]);
    const next = await chat({ messages: [{ role: 'user', content: 'What is the capital of France?' }] });
    expect(await next.json()).toMatchObject({ choices: [{ message: { content: 'The capital of France is Paris.' } }] });
    expect(server.process.exitCode).toBeNull();
  });

  test('before the first token of a plain request: a 500 that says so, and only for that request', async () => {
    const doomed = chat({ ...endless, stream: false });
    await until(async () => (await health()).inflight['foundation']?.running === 1);
    const queued = chat({});
    await until(async () => (await health()).inflight['foundation']?.queued === 1);
    process.kill(await runnerPid(), 'SIGKILL');
    expect((await doomed).status).toBe(500);
    expect(await (await doomed).json()).toMatchObject({ error: { type: 'internal_error', code: 'engine_failed' } });
    expect((await queued).status).toBe(200);
  });

  test('while idle: nobody notices', async () => {
    await chat({});
    process.kill(await runnerPid(), 'SIGKILL');
    await until(async () => (await health()).loaded.length === 0);
    expect((await chat({})).status).toBe(200);
  });
});

describe('a client that goes away stops its generation', () => {
  test('after the first token', async () => {
    const leave = new AbortController();
    const response = await chat(endless, leave.signal);
    await response.body!.getReader().read();
    leave.abort();
    await idle();
    expect((await chat({})).status).toBe(200);
  });

  test('while it waits for a whole answer', async () => {
    const leave = new AbortController();
    const pending = chat({ ...endless, stream: false }, leave.signal);
    await until(async () => (await health()).inflight['foundation']?.running === 1);
    leave.abort();
    await expect(pending).rejects.toThrow();
    await idle();
  });

  test('while it waits for its turn', async () => {
    const [first, second] = [new AbortController(), new AbortController()];
    const running = chat(endless, first.signal);
    await until(async () => (await health()).inflight['foundation']?.running === 1);
    const waiting = chat({}, second.signal);
    await until(async () => (await health()).inflight['foundation']?.queued === 1);
    second.abort();
    await expect(waiting).rejects.toThrow();
    await until(async () => (await health()).inflight['foundation']?.queued === 0);
    first.abort();
    await running.catch(() => undefined);
    await idle();
  });

  test('a hundred at once, half of them leaving, leave nothing behind', async () => {
    const statuses = await Promise.all(
      Array.from({ length: 100 }, async (_, index) => {
        const leave = new AbortController();
        const response = await chat(index % 2 === 0 ? endless : {}, leave.signal);
        if (index % 2 === 0) leave.abort();
        await response.text().catch(() => 'aborted');
        return response.status;
      }),
    );
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    await idle();
    await until(async () => (await health()).http_inflight === 1);
  });

  test('more than may wait are told to come back', async () => {
    const leave = new AbortController();
    const holder = await chat(endless, leave.signal);
    const refused: Response[] = [];
    // One runs and 32 wait.
    const answers = Array.from({ length: 80 }, async () => {
      const response = await chat({});
      if (response.status === 503) refused.push(response);
      return response.status;
    });
    // All have come before the one that holds it leaves.
    const [first] = await until(() => refused.length === 48 && (refused as [Response]));
    expect(first.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await first.json()).toMatchObject({ error: { code: 'overloaded' } });
    leave.abort();
    await holder.text().catch(() => 'aborted');
    const statuses = await Promise.all(answers);
    expect(statuses.filter((status) => status === 200).length).toBe(32);
    expect(refused.length).toBe(48);
    await idle();
  });
});

describe('models', () => {
  test('every *.gguf of the folder is one, by its file name; parts of models and dead links are none', async () => {
    const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map((model) => model.id)).toEqual(['foundation', 'broken', 'linked', 'second', 'third-Q8_0']);
  });

  test('another model takes the place of the resident one', async () => {
    for (const model of ['second', 'third-Q8_0', 'linked', 'foundation']) {
      const answer = await chat({ model, messages: [{ role: 'user', content: 'Hello' }] });
      expect([model, answer.status]).toEqual([model, 200]);
      expect(((await answer.json()) as { model: string }).model).toBe(model);
      expect((await health()).loaded).toEqual([model]);
    }
  });

  test('a damaged file is refused in words, and the service goes on', async () => {
    const answer = await chat({ model: 'broken' });
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ error: { message: expect.stringContaining('damaged') } });
    expect((await chat({})).status).toBe(200);
  });

  test('a file that comes later is found', async () => {
    expect((await chat({ model: 'late' })).status).toBe(404);
    await copyFile(foundation, join(modelsDir, 'late.gguf'));
    expect((await chat({ model: 'late' })).status).toBe(200);
  });
});
