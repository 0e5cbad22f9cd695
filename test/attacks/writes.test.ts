/** Every write of the service fails once, each in a run of its own, as a full or a failing disk would have it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ggufModel } from '../support/gguf.ts';
import { startRelayProcess, type RelayProcess } from '../support/relay-process.ts';
import { isThorough, seed } from '../support/sampling.ts';
import { cliPath, runCli, startServer, type CliResult, type TestServer } from '../support/server.ts';
import { startStubHub, type StubHub } from '../support/stub-hub.ts';
import { until } from '../support/wait.ts';
import { WritingScenario } from '../support/writing-scenario.ts';

const preload = new URL('../support/failing-writes.mjs', import.meta.url).href;
/** Of all writes, where not all of them are tried. */
const SAMPLES = 6;
const SAMPLES_OF_COMMAND = 3;

let folder: string;
let homes = 0;
let relay: RelayProcess;
let hub: StubHub;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'postern-writes-'));
  relay = await startRelayProcess();
  hub = await startStubHub();
  hub.repositories.set('org/tiny', { files: { 'tiny.gguf': MODEL } });
});
afterAll(async () => {
  await hub.close();
  await relay.end('SIGTERM');
  await rm(folder, { recursive: true, force: true });
});

const modelsOf = (home: string): string => `${home}-models`;

interface Fault {
  /** 0 for none. */
  readonly write: number;
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
    write,
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
  expect(words).not.toMatch(/^\s+at |internal error|Unhandled|node:internal/m);
}

/** Starts, lives and stops with one write failing, and starts again without. */
async function live(fault: Fault): Promise<void> {
  const { home, environment } = fault;
  const program = ['--import', preload, cliPath, 'serve'];
  const args = ['--relay', relay.origin];
  const fromHub = { HF_ENDPOINT: hub.url, HF_TOKEN: '' };
  const started = await startServer({ home, environment: { ...environment, ...fromHub }, program, args }).catch(
    (error: Error) => error,
  );
  let before: WritingScenario | undefined;
  if (started instanceof Error) expectRefusedStart(started);
  else {
    const scenario = new WritingScenario(started);
    before = scenario;
    await until(() => /Secrets are in/.test(started.log()));
    try {
      await scenario.run();
      if (fault.write === 0) scenario.expectWhole();
    } finally {
      await started.stop();
    }
    expectNoStack(started.log());
    expect(started.process.exitCode).toBe(0);
  }
  const again = await startServer({ home, environment: fromHub, args });
  try {
    await until(() => /Secrets are in/.test(again.log()));
    await (before?.after(again) ?? new WritingScenario(again)).expectKept();
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
  expect(message).toMatch(/^the server ended with 1:\n(Other users|postern: )/);
  expectNoStack(message.replace(/^the server.*\n/, ''));
}

describe('a disk that refuses one write', () => {
  test('leaves the service running, or not started with words, and what was acknowledged whole', async () => {
    const counting = newFault(0);
    await live(counting);
    const writes = await counting.writes();
    // The start, the identity, keys, pairings, answers, the log: fewer would mean that they are not seen.
    expect(writes.length).toBeGreaterThan(60);
    for (const table of [
      'relay_epochs',
      'access_keys',
      'invites',
      'sealed_actions',
      'devices',
      'responses',
      'requests',
      'jobs',
    ])
      expect(writes.join('\n')).toContain(` ${table} `);
    for (const change of [
      'UPDATE access_keys SET revoked_at_s',
      'UPDATE devices SET psk',
      'UPDATE invites SET closed_at_s',
      'UPDATE jobs SET state',
    ])
      expect(writes.join('\n')).toContain(change);
    const failures: unknown[] = [];
    await eachOf(chosen(writes.length, SAMPLES), async (number) => {
      await live(newFault(number)).catch((error: unknown) => {
        const write = `write ${writes[number - 1]} (of ${writes.length})`;
        failures.push(`${write}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      });
    });
    expect(failures).toEqual([]);
  }, 3_600_000);
});

const MODEL = ggufModel();

interface Command {
  readonly line: string;
  readonly environment?: (fault: Fault) => Record<string, string>;
  /** Whether it was done, or not at all. */
  readonly isDone?: (fault: Fault) => Promise<boolean>;
}

const set: Command = {
  line: 'settings set server.port 4001',
  isDone: async ({ home }) =>
    (await runCli(['settings', 'get', 'server.port'], { SVC_HOME: home })).stdout === '4001\n',
};
const pull: Command = {
  line: 'models pull hf:org/tiny --yes',
  environment: ({ home }) => ({ SVC_MODELS_DIR: modelsOf(home), HF_ENDPOINT: hub.url, HF_TOKEN: '', HOME: home }),
  isDone: async ({ home }) => {
    const found = await readFile(join(modelsOf(home), 'org/tiny/tiny.gguf')).catch(() => undefined);
    // There is the whole of it, or nothing by its name.
    if (found !== undefined) expect(found.equals(MODEL)).toBe(true);
    return found !== undefined;
  },
};

describe('a disk that refuses one write of a command', () => {
  test.each<Command>([{ line: 'keys create --label again --json' }, { line: 'keys revoke --all --json' }, set, pull])(
    '"postern $line" says so, or has done it',
    (command) => eachWriteFails(command),
    600_000,
  );

  test.each<Command>([set, { line: 'keys create --json' }])(
    '"postern $line" says so, or has done it, while the service runs',
    (command) => eachWriteFails(command, (home) => startServer({ home })),
    600_000,
  );
});

async function eachWriteFails(command: Command, start?: (home: string) => Promise<TestServer>): Promise<void> {
  const counting = newFault(0);
  expect(await runOnce(command, counting, start)).toMatchObject({ code: 0 });
  const writes = await counting.writes();
  const failures: string[] = [];
  for (const number of chosen(writes.length, SAMPLES_OF_COMMAND)) {
    await runOnce(command, newFault(number), start).catch((error: unknown) => {
      failures.push(`write ${writes[number - 1]} (of ${writes.length}): ${String(error)}`);
    });
  }
  expect(failures).toEqual([]);
}

async function runOnce(
  { line, environment = () => ({}), isDone }: Command,
  fault: Fault,
  start?: (home: string) => Promise<TestServer>,
): Promise<CliResult> {
  const { home } = fault;
  expect(await runCli(['keys', 'create', '--label', 'first'], { SVC_HOME: home })).toMatchObject({ code: 0 });
  const server = await start?.(home);
  const words = line.split(' ');
  const surroundings = { SVC_HOME: home, ...environment(fault) };
  try {
    const result = await runCli(words, { ...surroundings, ...fault.environment, NODE_OPTIONS: `--import=${preload}` });
    expectNoStack(result.stderr);
    expect([0, 1]).toContain(result.code);
    if (result.code === 1) expect(result.stderr).toMatch(/^postern: .*(disk|state\.db)/im);
    // What is said to be done is done; what was not acknowledged may be, where only the last word failed.
    if (result.code === 0) expect((await isDone?.(fault)) ?? true).toBe(true);
    expect(await runCli(['audit', 'verify'], { SVC_HOME: home })).toMatchObject({ code: 0 });
    expect(await runCli(words, surroundings)).toMatchObject({ code: 0 });
    expect((await isDone?.(fault)) ?? true).toBe(true);
    return result;
  } finally {
    await server?.stop();
  }
}
