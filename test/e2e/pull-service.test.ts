/** Fetching models through the service: Ollama's `POST /api/pull` with its own client, and `postern models pull`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Ollama, type ProgressResponse } from 'ollama';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { sha256 } from '../support/app-models.ts';
import { ggufModel as model } from '../support/gguf.ts';
import { cliPath, runCli, startServer, type TestServer } from '../support/server.ts';
import { startStubHub, type StubHub } from '../support/stub-hub.ts';
import { until } from '../support/wait.ts';

const FILE = 'tiny-Q4_K_M.gguf';
const BYTES = model(500_000);
const NAME = 'hf.co/org/tiny';

let folder: string;
let modelsDir: string;
let hub: StubHub;
let server: TestServer;
const started: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-pull-service-'));
  modelsDir = join(folder, 'models');
  hub = await startStubHub();
  hub.repositories.set('org/tiny', { files: { [FILE]: BYTES } });
  server = await start();
});
afterEach(async () => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  await server.stop();
  await hub.close();
  await rm(folder, { recursive: true, force: true });
});

const environment = (more: Record<string, string> = {}) => ({
  SVC_HOME: join(folder, 'home'),
  SVC_MODELS_DIR: modelsDir,
  HOME: folder,
  OLLAMA_MODELS: join(folder, 'none'),
  HF_ENDPOINT: hub.url,
  HF_TOKEN: '',
  ...more,
});
const start = (): Promise<TestServer> =>
  startServer({ home: join(folder, 'home'), modelsDir, environment: environment() });
const ollama = (): Ollama => new Ollama({ host: server.url });
const everything = async () =>
  (await readdir(modelsDir, { recursive: true, withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name)
    .toSorted();
const partSize = () =>
  stat(join(modelsDir, 'org/tiny', `${FILE}.part`)).then(
    ({ size }) => size,
    () => 0,
  );
const stall = (afterBytes = 100_000): void => void hub.faults.push({ kind: 'stall', afterBytes });
const post = (body: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${server.url}/api/pull`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
const linesOf = async (response: Response): Promise<unknown[]> =>
  (await response.text())
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

interface ListedPull {
  readonly id: string;
  readonly model: string;
  readonly state: string;
}
const pulls = async (): Promise<readonly ListedPull[]> =>
  ((await (await fetch(`${server.url}/admin/pulls`)).json()) as { pulls: ListedPull[] }).pulls;
const states = async () => (await pulls()).map(({ state }) => state);

interface RunningPull {
  readonly seen: ProgressResponse[];
  readonly ended: Promise<void>;
  readonly leave: () => void;
}
/** By Ollama's own client, to where its first bytes have come. */
async function beginPull(name = NAME): Promise<RunningPull> {
  const stream = await ollama().pull({ model: name, stream: true });
  const seen: ProgressResponse[] = [];
  const ended = (async () => {
    for await (const progress of stream) seen.push(progress);
  })();
  ended.catch(() => undefined);
  await until(() => seen.some(({ completed }) => completed > 0));
  return { seen, ended, leave: () => stream.abort() };
}

describe('Ollama’s client', () => {
  test('pulls a model, is told of it in Ollama’s words, and can use it', async () => {
    const digest = sha256(BYTES);
    const lines = await linesOf(await post({ model: NAME }));
    const pulling = { status: `pulling ${digest.slice(0, 12)}`, digest: `sha256:${digest}`, total: BYTES.length };
    expect(lines[0]).toEqual({ status: 'pulling manifest' });
    for (const line of lines.slice(1, -3)) expect(line).toMatchObject(pulling);
    expect(lines.at(-4)).toEqual({ ...pulling, completed: BYTES.length });
    expect(lines.slice(-3)).toEqual([
      { status: 'verifying sha256 digest' },
      { status: 'writing manifest' },
      { status: 'success' },
    ]);
    expect(await readFile(join(modelsDir, 'org/tiny', FILE))).toEqual(BYTES);
    expect((await ollama().list()).models.map(({ name }) => name)).toContain('tiny-Q4_K_M');
    for (const name of [NAME, `${NAME}:q4_k_m`, `${NAME}:latest`, 'HuggingFace.co/Org/Tiny', 'tiny-Q4_K_M']) {
      expect((await ollama().show({ model: name })).modelfile).toContain('FROM tiny-Q4_K_M\n');
    }
    await expect(ollama().show({ model: `${NAME}:Q8_0` })).rejects.toThrow('not installed');
  });

  test('pulls without a stream, by the old name of the field, and again at no cost', async () => {
    expect(await ollama().pull({ model: `${NAME}:q4_k_m` })).toEqual({ status: 'success' });
    const again = await post({ name: `${NAME}:latest`, stream: false, insecure: true });
    expect([again.status, await again.json()]).toEqual([200, { status: 'success' }]);
    expect(hub.downloads()).toHaveLength(1);
  });

  test('pulls by a signed URL, of which the signature is kept nowhere', async () => {
    const signature = 'only-for-an-hour';
    const url = `${hub.filesUrl}/org/tiny/${FILE}?signature=${signature}`;
    expect(await ollama().pull({ model: url })).toEqual({ status: 'success' });
    expect(await pulls()).toMatchObject([{ model: `${hub.filesUrl}/org/tiny/${FILE}`, state: 'completed' }]);
    for (const name of (await readdir(server.home)).filter((file) => file.startsWith('state.db'))) {
      expect((await readFile(join(server.home, name))).includes(signature)).toBe(false);
    }
    expect(server.log()).not.toContain(signature);
  });

  test('that asks for a model which is there hears that it is', async () => {
    const seen: string[] = [];
    for await (const { status } of await ollama().pull({ model: 'foundation', stream: true })) seen.push(status);
    expect(seen).toEqual(['pulling manifest', 'success']);
  });

  test.each([
    ['llama3.2', /^pull model manifest: file does not exist: .*hf\.co\/org\/repository/],
    ['hf.co/org/nothing', /^pull model manifest: .*not there/],
    [`${NAME}:Q8_0`, /^pull model manifest: .*no such model.*tiny-Q4_K_M/],
    ['hf.co/../../etc', /^pull model manifest: /],
    ['http://example.com/a.gguf', /^pull model manifest: .*https/],
  ])('of %s is told in Ollama’s words why not', async (name, words) => {
    const stream = await ollama().pull({ model: name, stream: true });
    const read = (async () => {
      for await (const _ of stream);
    })();
    await expect(read).rejects.toThrow(words);
    const whole = await post({ model: name, stream: false });
    expect([whole.status, await whole.json()]).toEqual([500, { error: expect.stringMatching(words) }]);
    expect(await everything()).toEqual([]);
  });

  test.each([[{}], [{ model: '' }], [{ model: 7 }], [{ model: NAME, stream: 'no' }]])(
    'that sends %j is refused',
    async (body) => {
      const refused = await post(body);
      expect([refused.status, await refused.json()]).toEqual([400, { error: expect.any(String) }]);
    },
  );

  test('is told what a hub sends in place of the file, and nothing is installed', async () => {
    hub.faults.push({ kind: 'flip-a-byte' });
    const refused = await post({ model: NAME, stream: false });
    expect(await refused.json()).toEqual({
      error: expect.stringMatching(/^digest mismatch, file must be downloaded again: /),
    });
    expect(await everything()).toEqual([]);
    expect(await states()).toEqual(['failed']);
  });
});

describe('a pull that several wait for', () => {
  test('fetches once, and each of them hears all of it', async () => {
    stall();
    const first = await beginPull();
    const second = await beginPull();
    hub.release();
    await Promise.all([first.ended, second.ended]);
    for (const { seen } of [first, second]) {
      expect(seen[0]).toEqual({ status: 'pulling manifest' });
      expect(seen.at(-1)).toEqual({ status: 'success' });
    }
    expect(hub.downloads()).toHaveLength(1);
    expect(await states()).toEqual(['completed']);
  });

  test('goes on when one of them leaves, and stops with the last; the next goes on where it was', async () => {
    stall();
    const first = await beginPull();
    const second = await beginPull();
    first.leave();
    await expect(first.ended).rejects.toThrow();
    expect(await states()).toEqual(['running']);
    second.leave();
    await until(async () => (await states())[0] === 'cancelled');
    expect(await everything()).toEqual([`${FILE}.part`, `${FILE}.part.state`]);
    expect(await ollama().pull({ model: NAME })).toEqual({ status: 'success' });
    expect(hub.downloads().at(-1)?.range).toBe('bytes=100000-');
    expect(await states()).toEqual(['completed', 'cancelled']);
  });

  test('of four models at once leaves no room for a fifth', async () => {
    for (let number = 1; number <= 5; number += 1)
      hub.repositories.set(`org/m${number}`, { files: { [`m${number}.gguf`]: model(400_000 + 4000 * number) } });
    const running: RunningPull[] = [];
    for (let number = 1; number <= 4; number += 1) {
      stall();
      running.push(await beginPull(`hf.co/org/m${number}`));
    }
    const refused = await post({ model: 'hf.co/org/m5' });
    expect([refused.status, await refused.json()]).toEqual([
      503,
      { error: expect.stringContaining('Too many models') },
    ]);
    hub.release();
    await Promise.all(running.map(({ ended }) => ended));
    expect(await ollama().pull({ model: 'hf.co/org/m5' })).toEqual({ status: 'success' });
  });
});

test.each<[string, Record<string, string>]>([
  ['a web page', { origin: 'https://evil.example' }],
  ['a proxy', { 'x-forwarded-for': '192.0.2.1' }],
])('%s fetches nothing, and is told so in Ollama’s shape', async (_who, headers) => {
  const refused = await post({ model: NAME }, headers);
  expect([refused.status, await refused.json()]).toEqual([403, { error: expect.any(String) }]);
  expect(hub.requests).toEqual([]);
});

interface Command extends ChildProcess {
  readonly said: () => string;
  readonly exited: Promise<unknown>;
}

describe('the command line, while the service runs', () => {
  function beginCommand(more: Record<string, string> = {}): Command {
    const child = spawn(process.execPath, [cliPath, 'models', 'pull', 'hf:org/tiny'], {
      env: { ...process.env, ...environment(more) },
    });
    started.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (text += chunk.toString()));
    return Object.assign(child, { said: () => text, exited: once(child, 'exit') });
  }
  const stalled = async (): Promise<void> =>
    void (await until(async () => (await partSize()) === 100_000 && hub.downloads().at(-1)?.sentBytes === 100_000));

  test('has it fetch the model', async () => {
    const pulled = await runCli(['models', 'pull', 'hf:org/tiny'], environment());
    expect(pulled).toMatchObject({ code: 0, stdout: 'tiny-Q4_K_M\n' });
    expect(pulled.stderr).toMatch(/100 %.*SHA-256 was checked/s);
    expect(await pulls()).toMatchObject([{ model: 'hf:org/tiny', state: 'completed' }]);
    const again = await runCli(['models', 'pull', 'hf:org/tiny'], environment());
    expect(again).toMatchObject({ code: 0, stderr: expect.stringContaining('It was there already') });
  });

  test('loses nothing when its terminal closes', async () => {
    stall();
    const command = beginCommand();
    await stalled();
    command.kill('SIGHUP');
    await command.exited;
    hub.release();
    await until(async () => (await states())[0] === 'completed');
    expect(await everything()).toEqual([FILE]);
    expect(hub.downloads()).toHaveLength(1);
  });

  test('stops it there with Ctrl-C, and says what is kept', async () => {
    stall();
    const command = beginCommand();
    await stalled();
    command.kill('SIGINT');
    await command.exited;
    expect(command.said()).toMatch(/100 kB of 500 kB are kept: the same command goes on from there/);
    expect(await states()).toEqual(['cancelled']);
    expect(await everything()).toEqual([`${FILE}.part`, `${FILE}.part.state`]);
  });

  test('does not stop with Ctrl-C what another waits for', async () => {
    stall();
    const command = beginCommand();
    await stalled();
    const other = await beginPull('hf:org/tiny');
    command.kill('SIGINT');
    await command.exited;
    expect(await states()).toEqual(['running']);
    hub.release();
    await other.ended;
    expect(other.seen.at(-1)).toEqual({ status: 'success' });
  });

  test('says what went wrong there', async () => {
    hub.faults.push({ kind: 'flip-a-byte' });
    const failed = await runCli(['models', 'pull', 'hf:org/tiny'], environment());
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining('SHA-256 is another') });
  });

  test('fetches by itself what the service would fetch from or to elsewhere', async () => {
    const elsewhere = join(folder, 'elsewhere');
    const pulled = await runCli(['models', 'pull', 'hf:org/tiny'], environment({ SVC_MODELS_DIR: elsewhere }));
    expect(pulled).toMatchObject({ code: 0, stdout: 'tiny-Q4_K_M\n' });
    expect(await readdir(join(elsewhere, 'org/tiny'))).toEqual([FILE]);
    expect(await runCli(['models', 'pull', 'hf:org/tiny'], environment({ HF_TOKEN: 'hf_mine' }))).toMatchObject({
      code: 0,
    });
    expect(await pulls()).toEqual([]);
  });

  test('finds a pull resumed after the service was killed, and one that nobody waits for interrupted', async () => {
    hub.repositories.set('org/other', { files: { 'other.gguf': model(300_000) } });
    stall();
    const command = beginCommand();
    await stalled();
    stall(50_000);
    const waiting = await beginPull('hf.co/org/other');
    server.process.kill('SIGKILL');
    await once(server.process, 'exit');
    await expect(waiting.ended).rejects.toThrow();
    await command.exited;
    expect([command.exitCode, command.said()]).toEqual([1, expect.stringContaining('goes on when it starts again')]);
    server = await start();
    await until(async () => (await pulls()).every(({ state }) => state !== 'running'));
    expect((await pulls()).map(({ model: what, state }) => [what, state])).toEqual([
      ['hf:org/other', 'interrupted'],
      ['hf:org/tiny', 'completed'],
    ]);
    expect(await readFile(join(modelsDir, 'org/tiny', FILE))).toEqual(BYTES);
    expect(hub.downloads().at(-1)?.range).toMatch(/^bytes=\d+-$/);
  });

  test('finds a pull resumed after the service was stopped', async () => {
    stall();
    const command = beginCommand();
    await stalled();
    await server.stop();
    await command.exited;
    server = await start();
    await until(async () => (await states())[0] === 'completed');
    expect(await everything()).toEqual([FILE]);
  });
});
