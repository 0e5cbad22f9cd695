/** `postern approvals`, `approve` and `deny` as their owner runs them, against a service whose queue the test fills. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { approvalEventSchema, approvalListSchema } from '../../gateway/wire/admin/approvals.ts';
import {
  removeHome,
  startApprovalsService,
  temporaryHome,
  type ApprovalsService,
} from '../support/approvals-service.ts';
import { cliPath, runCli } from '../support/server.ts';
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

describe('approvals', () => {
  test('shows what waits, a code large and with what to do with it', async () => {
    expect(await service.cli('approvals')).toEqual({ code: 0, stdout: '', stderr: 'Nothing waits.\n' });
    const tool = service.ask({ summary: 'run "rm -r build"' });
    const pairing = service.ask({ kind: 'pairing', summary: 'Ada’s tablet', code: '471902' });
    const { code, stdout, stderr } = await service.cli('approvals');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    const clock = String.raw`until \d\d:\d\d:\d\d`;
    expect(stdout).toMatch(new RegExp(`^${tool.approval.id}  tool  ${clock}  run "rm -r build"$`, 'm'));
    expect(stdout).toMatch(new RegExp(`^${pairing.approval.id}  pairing  ${clock}  Ada’s tablet$`, 'm'));
    expect(stdout).toMatch(/\n\n.*\n {4}│ {3}4 7 1 9 0 2 {3}│\n.*\n.*Type this code on the device/);
  });

  test('says it to programs in JSON', async () => {
    const { approval } = service.ask({ kind: 'pairing', code: '000001' });
    const rows = JSON.parse((await service.cli('approvals', '--json')).stdout) as unknown;
    expect(approvalListSchema.parse({ approvals: rows }).approvals).toMatchObject([
      { id: approval.id, code: '000001' },
    ]);
  });

  test('prints nothing that commands the terminal', async () => {
    service.ask({ summary: '\u001b[2J\u202eevil\r\n0000  tool  denied' });
    const { stdout } = await service.cli('approvals');
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
    for (const command of ['\u001b', '\u202e', '\r']) expect(stdout).not.toContain(command);
  });
});

describe('status', () => {
  test('tells how many wait, and only when some do', async () => {
    expect((await service.cli('status')).stdout).not.toContain('approval');
    service.ask();
    expect((await service.cli('status')).stdout).toContain('\n1 approval waits: postern approvals\n');
    service.ask();
    expect((await service.cli('status')).stdout).toContain('\n2 approvals wait: postern approvals\n');
    expect(JSON.parse((await service.cli('status', '--json')).stdout)).toMatchObject({ approvals_waiting: 2 });
  });
});

describe('approve and deny', () => {
  test.each([
    ['approve', 'approved', 'Approved: run "ls"\n'],
    ['deny', 'denied', 'Denied: run "ls"\n'],
  ])('%s says what was decided', async (command, outcome, stderr) => {
    const asked = service.ask();
    expect(await service.cli(command, asked.approval.id)).toEqual({ code: 0, stdout: '', stderr });
    expect(await asked.outcome).toBe(outcome);
  });

  test('take the beginning of an id that only one has', async () => {
    const all = Array.from({ length: 20 }, () => service.ask());
    const ids = all.map(({ approval }) => approval.id);
    // Of 20 hexadecimal ids two begin alike.
    const shared = Array.from('0123456789abcdef').find((digit) => ids.filter((id) => id.startsWith(digit)).length > 1)!;
    const several = await service.cli('approve', shared);
    expect(several).toMatchObject({ code: 1, stderr: expect.stringMatching(/begin with ".".*Give more/) });
    expect(service.running.approvals.list()).toHaveLength(20);
    const prefix = (id: string) =>
      Array.from({ length: 16 }, (_, at) => id.slice(0, at + 1)).find(
        (start) => ids.filter((other) => other.startsWith(start)).length === 1,
      )!;
    const [first] = all;
    expect(await service.cli('approve', prefix(first!.approval.id))).toMatchObject({ code: 0 });
    expect(await first!.outcome).toBe('approved');
    expect(service.running.approvals.list()).toHaveLength(19);
  });

  test('say how it was settled before, and that it is unknown', async () => {
    const asked = service.ask();
    const { id } = asked.approval;
    await service.cli('deny', id);
    expect(await service.cli('approve', id)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('it was denied'),
    });
    const late = service.ask({ lifetimeMs: 1 });
    await late.outcome;
    expect(await service.cli('approve', late.approval.id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('time ran out'),
    });
    expect(await service.cli('deny', 'ffff')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No approval has this id'),
    });
  });

  test('leave what has a code to the device', async () => {
    const pairing = service.ask({ kind: 'pairing', code: '471902' });
    expect(await service.cli('approve', pairing.approval.id)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('type it on the device'),
    });
    expect(service.running.approvals.list()).toHaveLength(1);
    expect(await service.cli('deny', pairing.approval.id)).toMatchObject({ code: 0 });
    expect(await pairing.outcome).toBe('denied');
  });

  test.each([
    [['approve'], 'say which one'],
    [['approve', 'a', 'b'], 'say which one'],
    [['deny', ''], 'no ID'],
    [['deny', '../shutdown'], 'no ID'],
    [['approve', 'x'.repeat(65)], 'no ID'],
    [['approve', 'a', '--force'], '--force'],
    [['approvals', 'extra'], 'say "list"'],
    [['approvals', 'list', 'extra'], 'too many'],
  ])('%j is a mistake that is explained, and decides nothing', async (args, words) => {
    service.ask();
    expect(await service.cli(...args)).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(words) });
    expect(service.running.approvals.list()).toHaveLength(1);
  });

  test('without a service say how to start it', async () => {
    await service.stop();
    for (const args of [['approvals'], ['approvals', '--watch'], ['approve', 'a'], ['deny', 'a']]) {
      const answer = await runCli(args, { SVC_HOME: home });
      expect(answer).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('"postern serve"') });
    }
  });
});

describe('--watch', () => {
  function watch(...args: string[]) {
    const child = spawn(process.execPath, [cliPath, 'approvals', '--watch', ...args], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, SVC_HOME: home },
    });
    const written = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk: Buffer) => (written.stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (written.stderr += chunk.toString()));
    return {
      lines: () => written.stdout.split('\n').slice(0, -1),
      words: () => written.stderr,
      end: async () => {
        child.kill('SIGINT');
        const [code] = (await once(child, 'close')) as [number | null];
        return code;
      },
    };
  }

  test('tells of each as it comes and as it ends, until Ctrl-C', async () => {
    const before = service.ask({ summary: 'was there before' });
    const watching = watch();
    await until(() => watching.lines().length === 1);
    const after = service.ask({ summary: 'came after' });
    await until(() => watching.lines().length === 2);
    service.running.approvals.decide(after.approval.id, 'approved');
    service.running.approvals.decide(before.approval.id, 'denied');
    await until(() => watching.lines().length === 4);
    expect(watching.lines()).toEqual([
      expect.stringMatching(`^${before.approval.id}  tool  until .*  was there before$`),
      expect.stringMatching(`^${after.approval.id}  tool  until .*  came after$`),
      `${after.approval.id}  approved  came after`,
      `${before.approval.id}  denied  was there before`,
    ]);
    expect(await watching.end()).toBe(0);
    await until(() => service.running.listener.counts().requests === 0);
  });

  test('goes on with the service that comes after', async () => {
    const watching = watch('--json');
    const events = () => watching.lines().map((line) => approvalEventSchema.parse(JSON.parse(line)));
    await until(() => watching.lines().length === 1);
    const lost = service.ask();
    await service.stop();
    await until(() => watching.words().includes('come back'));
    service = await startApprovalsService(home);
    await until(() => watching.lines().length === 4);
    const fresh = service.ask();
    await until(() => watching.lines().length === 5);
    expect(events()).toMatchObject([
      { event: 'approval.snapshot', approvals: [] },
      { event: 'approval.added', approval: { id: lost.approval.id } },
      { event: 'approval.settled', approval: { id: lost.approval.id }, outcome: 'cancelled' },
      { event: 'approval.snapshot', approvals: [] },
      { event: 'approval.added', approval: { id: fresh.approval.id } },
    ]);
    expect(await watching.end()).toBe(0);
  });

  test('ends on Ctrl-C also while it waits', async () => {
    const watching = watch();
    await until(() => service.running.listener.counts().requests === 1 && watching.words() !== '');
    await service.stop();
    await until(() => watching.words().includes('come back'));
    expect(await watching.end()).toBe(0);
  });
});
