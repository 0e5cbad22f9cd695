/** Every write of the service fails once, each in a run of its own, as a full or a failing disk would have it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { connect, pair, PosternError, type PairedDevice } from '../../clients/sdk/index.ts';
import { askForInvite } from '../support/invites.ts';
import { isThorough, seed } from '../support/sampling.ts';
import { cliPath, runCli, startServer, type CliResult, type TestServer } from '../support/server.ts';
import { until } from '../support/wait.ts';

const preload = new URL('../support/failing-writes.mjs', import.meta.url).href;
const crypto = gatewayCrypto('node');
/** Of all writes, where not all of them are tried. */
const SAMPLES = 6;
const SAMPLES_OF_COMMAND = 3;

let folder: string;
let homes = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-writes-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

interface Fault {
  readonly home: string;
  readonly environment: Record<string, string>;
  /** Each write of that run. */
  writes(): Promise<readonly string[]>;
}

/** @param write the one that fails; 0 for none */
function newFault(write: number): Fault {
  homes += 1;
  const home = join(folder, `home-${homes}`);
  const log = join(folder, `writes-${homes}.log`);
  return {
    home,
    environment: { SVC_HOME: home, FAIL_WRITE: String(write), FAIL_WRITE_LOG: log },
    writes: async () => (await readFile(log, 'utf8')).trim().split('\n'),
  };
}

/** Numbers from 1 to `count`: all of them, or some by the seed. */
function chosen(count: number, samples: number): readonly number[] {
  const all = Array.from({ length: count }, (_, index) => index + 1);
  if (isThorough) return all;
  const step = count / samples;
  return Array.from({ length: samples }, (_, index) => 1 + Math.floor(((index + (seed % 97) / 97) * step) % count));
}

function expectNoStack(words: string): void {
  expect(words).not.toMatch(/^\s+at |something went wrong inside|Unhandled|node:internal/m);
}

/** What was answered with yes, and has to be so after a restart. */
interface Acknowledged {
  readonly keys: string[];
  readonly revoked: string[];
  readonly devices: PairedDevice[];
  readonly responses: string[];
}

const json = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
/** What a caller is told of a write that failed; nothing else may be wrong. */
const REFUSALS = [503, 507];

class Scenario {
  readonly acknowledged: Acknowledged = { keys: [], revoked: [], devices: [], responses: [] };
  readonly #server: TestServer;

  constructor(server: TestServer) {
    this.#server = server;
  }

  async run(): Promise<void> {
    await this.#makeKey();
    await this.#makeKey();
    await this.#revoke(this.acknowledged.keys[0]);
    await this.#pair({});
    await this.#pair({ needs_approval: true });
    await this.#chat();
    await this.#respond();
    expect((await this.#ask('/api/tags')).status).toBe(200);
    expect((await this.#ask('/v1/responses/resp_none')).status).toBe(404);
    await until(async () => ((await (await this.#ask('/health')).json()) as { status: string }).status === 'healthy');
  }

  /** After a restart. */
  async expectKept(): Promise<void> {
    const { keys } = (await (await this.#ask('/admin/keys')).json()) as { keys: { id: string; status: string }[] };
    const statusOf = (id: string) => keys.find((key) => key.id === id)?.status;
    const { acknowledged } = this;
    for (const id of acknowledged.keys) {
      expect([id, statusOf(id)]).toEqual([id, acknowledged.revoked.includes(id) ? 'revoked' : 'active']);
    }
    for (const device of acknowledged.devices) await this.#call(device);
    for (const id of acknowledged.responses) expect((await this.#ask(`/v1/responses/${id}`)).status).toBe(200);
  }

  after(server: TestServer): Scenario {
    const scenario = new Scenario(server);
    Object.assign(scenario.acknowledged, this.acknowledged);
    return scenario;
  }

  #ask(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.#server.url}${path}`, init);
  }

  /** @returns what was answered; undefined where that was not stored */
  async #change(path: string, init: RequestInit): Promise<unknown> {
    const response = await this.#ask(path, init);
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    expect([path, response.status, answer]).toEqual([path, expect.toBeOneOf(REFUSALS), answer]);
    expect(JSON.stringify(answer)).toMatch(/storage_(full|unavailable)|identity_unavailable/);
    return undefined;
  }

  async #makeKey(): Promise<void> {
    const made = (await this.#change('/admin/keys', json({}))) as { id: string } | undefined;
    if (made !== undefined) this.acknowledged.keys.push(made.id);
  }

  /** Refused from now on, and written before the service is healthy again, whatever the disk says to it. */
  async #revoke(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    expect(await this.#change(`/admin/keys/${id}`, { method: 'DELETE' })).toMatchObject({ id, revoked: true });
    this.acknowledged.revoked.push(id);
  }

  async #pair(wish: object): Promise<void> {
    const invite = await askForInvite(this.#server, wish).catch(() => undefined);
    if (typeof invite !== 'string') return;
    const entries = new Map<string, string>();
    const storage = {
      read: async (name: string) => entries.get(name),
      write: async (name: string, text: string) => void entries.set(name, text),
      erase: async (name: string) => void entries.delete(name),
    };
    const device = { name: 'a device', platform: 'test' };
    const pairing = pair(invite, { crypto, storage, device }).catch((error: unknown) => {
      expect(error).toBeInstanceOf(PosternError);
      return undefined;
    });
    if ('needs_approval' in wish) await this.#approve(pairing);
    const paired = await pairing;
    if (paired === undefined) return;
    this.acknowledged.devices.push(paired);
    await this.#call(paired);
  }

  async #approve(pairing: Promise<unknown>): Promise<void> {
    let isOver = false;
    void pairing.then(() => (isOver = true));
    await until(async () => {
      const { approvals } = (await (await this.#ask('/admin/approvals')).json()) as { approvals: { id: string }[] };
      for (const { id } of approvals) await this.#change(`/admin/approvals/${id}`, json({ decision: 'approve' }));
      return isOver;
    });
  }

  async #call(device: PairedDevice): Promise<void> {
    const client = connect({ ...device, urls: [this.#server.url] });
    try {
      const response = await client.fetch('/v1/models');
      expect(response.status).toBe(200);
      await response.text();
    } finally {
      client.close();
    }
  }

  async #chat(): Promise<void> {
    const body = { model: 'foundation', max_tokens: 1, messages: [{ role: 'user', content: 'hello' }] };
    const response = await this.#ask('/v1/chat/completions', json(body));
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"choices"')]);
  }

  async #respond(): Promise<void> {
    const body = { model: 'foundation', max_output_tokens: 16, input: 'hello' };
    const response = await this.#ask('/v1/responses', json(body));
    expect(response.status).toBe(200);
    const { id, store } = (await response.json()) as { id: string; store: boolean };
    if (store) this.acknowledged.responses.push(id);
  }
}

/** Starts, lives and stops with one write failing, and starts again without. */
async function live(fault: Fault): Promise<void> {
  const { home, environment } = fault;
  const program = ['--import', preload, cliPath, 'serve'];
  const started = await startServer({ home, environment, program }).catch((error: Error) => error);
  let before: Scenario | undefined;
  if (started instanceof Error) expectRefusedStart(started);
  else {
    const scenario = new Scenario(started);
    before = scenario;
    await until(() => /Secrets are in/.test(started.log()));
    try {
      await scenario.run();
    } finally {
      await started.stop();
    }
    expectNoStack(started.log());
    expect(started.process.exitCode).toBe(0);
  }
  const again = await startServer({ home });
  try {
    await until(() => /Secrets are in/.test(again.log()));
    await (before?.after(again) ?? new Scenario(again)).expectKept();
    expectNoStack(again.log());
  } finally {
    await again.stop();
  }
  expect(await runCli(['audit', 'verify'], { SVC_HOME: home })).toMatchObject({ code: 0 });
}

/** Three at a time. */
async function eachOf(numbers: readonly number[], run: (number: number) => Promise<void>): Promise<void> {
  const left = [...numbers];
  const work = async (): Promise<void> => {
    for (let number = left.shift(); number !== undefined; number = left.shift()) await run(number);
  };
  await Promise.all([work(), work(), work()]);
}

function expectRefusedStart({ message }: Error): void {
  expect(message).toMatch(/^the server ended with 1:\n(Others|postern: )/);
  expectNoStack(message.replace(/^the server.*\n/, ''));
}

describe('a disk that refuses one write', () => {
  test('leaves the service running, or not started with words, and what was acknowledged whole', async () => {
    const counting = newFault(0);
    await live(counting);
    const writes = await counting.writes();
    // The start, the identity, keys, pairings, answers, the log: fewer would mean that they are not seen.
    expect(writes.length).toBeGreaterThan(60);
    await eachOf(chosen(writes.length, SAMPLES), async (number) => {
      await live(newFault(number)).catch((error: unknown) => {
        throw new Error(`write ${writes[number - 1]} (of ${writes.length})`, { cause: error });
      });
    });
  }, 3_600_000);
});

describe('a disk that refuses one write of a command', () => {
  const commands: readonly (readonly string[])[] = [
    ['keys', 'create', '--label', 'again', '--json'],
    ['keys', 'revoke', '--all', '--json'],
    ['settings', 'set', 'server.port', '4001'],
  ];
  test.each(commands)(
    '"postern %s %s" says so, or has done it',
    async (...command) => {
      const run = async (fault: Fault): Promise<CliResult> => {
        const { home } = fault;
        expect(await runCli(['keys', 'create', '--label', 'first'], { SVC_HOME: home })).toMatchObject({ code: 0 });
        return runCli(command, { ...fault.environment, NODE_OPTIONS: `--import=${preload}` });
      };
      const counting = newFault(0);
      expect(await run(counting)).toMatchObject({ code: 0 });
      const writes = await counting.writes();
      for (const number of chosen(writes.length, SAMPLES_OF_COMMAND)) {
        const fault = newFault(number);
        const { code, stderr } = await run(fault);
        expectNoStack(stderr);
        expect([0, 1]).toContain(code);
        if (code === 1) expect(stderr).toMatch(/^postern: .*(disk|state\.db)/m);
        expect(await runCli(['audit', 'verify'], { SVC_HOME: fault.home })).toMatchObject({ code: 0 });
        expect(await runCli(command, { SVC_HOME: fault.home })).toMatchObject({ code: 0 });
      }
    },
    600_000,
  );
});
