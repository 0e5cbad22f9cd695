/** `postern invite` and `postern devices` as a user runs them, on a real service. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import QRCode from 'qrcode';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { qrCodeRows } from '../../cli/qr-code.ts';
import type { DeviceResource, InviteState, MadeInvite } from '../../gateway/wire/admin/pairings.ts';
import { findInviteCode } from '../../identity/invite-code.ts';
import { description, deviceKeyOf, gateway } from '../identity/node/pairings-of-home.ts';
import {
  removeHome,
  startApprovalsService,
  temporaryHome,
  type ApprovalsService,
} from '../support/approvals-service.ts';
import { cliPath } from '../support/server.ts';
import { until } from '../support/wait.ts';

let home: string;
let service: ApprovalsService;
let children: ChildProcess[];
beforeEach(async () => {
  home = await temporaryHome();
  service = await startApprovalsService(home);
  children = [];
});
afterEach(async () => {
  for (const child of children) if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
  await service.stop();
  await removeHome(home);
});

interface Inviting {
  readonly child: ChildProcess;
  out(): string;
  err(): string;
  /** Until the first line of data is there. */
  line(number?: number): Promise<string>;
  end(): Promise<number | null>;
}

const environment = () => ({ ...process.env, SVC_HOME: home, SVC_IDENTITY_STORE: 'vault' });

function watch(child: ChildProcess): Inviting {
  children.push(child);
  let [out, err] = ['', ''];
  child.stdout!.on('data', (chunk: Buffer) => (out += chunk.toString()));
  child.stderr!.on('data', (chunk: Buffer) => (err += chunk.toString()));
  const closed = once(child, 'close') as Promise<[number | null]>;
  return {
    child,
    out: () => out,
    err: () => err,
    line: (number = 0) => until(() => (out.split('\n').length > number + 1 ? out.split('\n')[number] : undefined)),
    end: async () => (await closed)[0],
  };
}

const invite = (...args: string[]) =>
  watch(
    spawn(process.execPath, [cliPath, 'invite', ...args], { stdio: ['ignore', 'pipe', 'pipe'], env: environment() }),
  );

/** The same on a screen of this width, with a keyboard. */
function inviteOnScreen(columns: number, ...args: string[]): Inviting {
  const command = `stty cols ${columns}; exec ${[process.execPath, cliPath, 'invite', ...args].join(' ')}`;
  return watch(spawn('script', ['-qec', command, '/dev/null'], { env: environment() }));
}

const pairings = () => service.running.identity.openPairings();

async function redeem(inviteId: string) {
  const { devices } = await pairings();
  return devices.redeem({ inviteId, deviceKey: deviceKeyOf(1), description, gateway });
}

/** Once the program has made it. */
const openInvite = () => until(async () => (await pairings()).invites.list().find(({ state }) => state === 'open'));

const auditLines = async () => (await service.cli('audit', 'list')).stdout;

describe('an invite', () => {
  test('is one line for a program, and one more for the device that came', async () => {
    const inviting = invite('--json', '--agent', '3', '--expires', '2m', '--bearer');
    const made = JSON.parse(await inviting.line()) as MadeInvite;
    expect(made).toMatchObject({ state: 'open', agent_index: 3, bearer: true, needs_approval: false });
    expect(made.urls).toEqual([service.url]);
    expect(findInviteCode(made.code)).toMatchObject({ urls: [service.url], isForOneAgent: true });
    await redeem(made.id);
    expect(await inviting.end()).toBe(0);
    expect(JSON.parse(await inviting.line(1))).toMatchObject({
      outcome: 'paired',
      device: { name: 'phone', platform: 'android', agent_index: 3, status: 'active' },
    });
    expect(inviting.out().split('\n')).toHaveLength(3);
    expect(inviting.err()).toMatch(/^Paired: "phone" \("android", "Pixel"\)\. "postern devices revoke [0-9a-f]{16}"/);
    expect(await auditLines()).toMatch(/device_paired {2}deviceId="[0-9a-f]{16}" {2}name="phone" {2}scope="0x/);
  });

  test('goes into a pipe as its text alone; the words say what a person has to know', async () => {
    const inviting = invite();
    const code = await inviting.line();
    const { id } = await openInvite();
    expect(Buffer.from(findInviteCode(code)!.secret)).toHaveLength(16);
    await until(() => inviting.err().includes('Ctrl-C'));
    expect(inviting.err()).toMatch(/listens on this machine only[^]*--expose/);
    expect(inviting.err()).toContain((await service.cli('identity', 'show')).stdout.match(/gateway {2}(.*)/)![1]);
    expect(inviting.err()).not.toContain('SVC:');
    await redeem(id);
    expect(await inviting.end()).toBe(0);
    expect(inviting.out()).toBe(`${code}\n`);
  });

  test('is closed with Ctrl-C', async () => {
    const inviting = invite('--json');
    const { id } = JSON.parse(await inviting.line()) as MadeInvite;
    inviting.child.kill('SIGINT');
    expect(await inviting.end()).toBe(1);
    expect(JSON.parse(await inviting.line(1))).toEqual({ outcome: 'closed', device: null });
    expect(inviting.err()).toContain('closed');
    expect((await redeem(id)).result).toBe('over');
  });

  test('that ends elsewhere ends the waiting', async () => {
    const inviting = invite('--json');
    const { id } = JSON.parse(await inviting.line()) as MadeInvite;
    expect((await service.cli('invite', 'list')).stdout).toMatch(new RegExp(`^${id}  open `, 'm'));
    expect(await service.cli('invite', 'close', id)).toMatchObject({
      code: 0,
      stderr: 'Closed: no device can use it.\n',
    });
    expect(await inviting.end()).toBe(1);
    expect(await service.cli('invite', 'close', id)).toMatchObject({ code: 0, stderr: 'It was closed already.\n' });
    const listed = JSON.parse((await service.cli('invite', 'list', '--json')).stdout) as InviteState[];
    expect(listed).toMatchObject([{ id, state: 'closed' }]);
  });

  test('is not lost with the service, and its owner is told so', async () => {
    const inviting = invite();
    const { id } = (await inviting.line(), await openInvite());
    await service.stop();
    expect(await inviting.end()).toBe(1);
    expect(inviting.err()).toMatch(new RegExp(`the service has gone\\..*postern invite close ${id}`));
  });

  test.each([
    ['--expires', '59s'],
    ['--expires', '61m'],
    ['--expires', 'never'],
    ['--agent', '-1'],
    ['again'],
    ['list', '--png', 'x'],
    ['close', 'SVC:ABC'],
  ])('is not made with %s %s', async (...args) => {
    const { code, stdout, stderr } = await service.cli('invite', ...args.filter((one) => typeof one === 'string'));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).not.toContain('ABC');
    expect((await pairings()).invites.list()).toEqual([]);
  });

  test('is not made without a service', async () => {
    await service.stop();
    expect(await service.cli('invite')).toMatchObject({ code: 1, stderr: expect.stringContaining('postern serve') });
  });
});

describe('as a picture', () => {
  test('it is the owner’s alone, and never over a file that is there', async () => {
    const path = join(home, 'code.png');
    const inviting = invite('--png', path);
    await inviting.line();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await readFile(path)).subarray(1, 4).toString()).toBe('PNG');
    inviting.child.kill('SIGINT');
    await inviting.end();
    await writeFile(path, 'mine');
    expect(await service.cli('invite', '--png', path)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('there already'),
    });
    expect(await readFile(path, 'utf8')).toBe('mine');
    expect((await pairings()).invites.list()).toHaveLength(1);
  });

  test('that cannot be written, the invite is closed again', async () => {
    const path = join(home, 'nowhere', 'code.png');
    expect(await service.cli('invite', '--png', path)).toMatchObject({ code: 1, stdout: '' });
    expect(existsSync(path)).toBe(false);
    expect((await pairings()).invites.list()).toMatchObject([{ state: 'closed' }]);
  });
});

describe('on a screen', () => {
  test('it is a QR code in black on white, of its text in the alphanumeric mode', async () => {
    const inviting = inviteOnScreen(100);
    await until(() => inviting.out().includes('Ctrl-C'));
    const code = /^SVC:[A-Z2-7]+/m.exec(inviting.out())![0];
    const drawn = QRCode.create(code, { errorCorrectionLevel: 'M' });
    expect(drawn.version).toBeLessThanOrEqual(10);
    expect(drawn.segments.map(({ mode }) => mode.id)).toEqual(['Alphanumeric']);
    const rows = inviting
      .out()
      .split(/\r?\n/)
      // oxlint-disable-next-line no-control-regex
      .flatMap((line) => /^\u001b\[30;107m(.*)\u001b\[0m$/.exec(line)?.[1] ?? []);
    expect(modulesOf(rows)).toEqual(withQuietZone(drawn));
    expect(rows).toEqual(await qrCodeRows(code));
    await redeem((await openInvite()).id);
    expect(await inviting.end()).toBe(0);
    expect(inviting.out()).toContain('Paired: "phone" ("android", "Pixel").');
  });

  test('that is too narrow, it is said, and the text is there', async () => {
    const inviting = inviteOnScreen(40);
    await until(() => inviting.out().includes('Ctrl-C'));
    expect(inviting.out()).toMatch(/too narrow[^]*SVC:/);
    expect(inviting.out()).not.toContain('▀');
    inviting.child.stdin!.write('\u0003');
    await inviting.end();
    expect((await pairings()).invites.list()).toMatchObject([{ state: 'closed' }]);
  });

  test.each([
    ['y', 'approved'],
    ['n', 'denied'],
  ] as const)('the owner is asked there about the device, and %s is %s', async (key, outcome) => {
    const inviting = inviteOnScreen(100, '--approve');
    await until(() => inviting.out().includes('You are asked'));
    const asked = service.ask({ kind: 'pairing', summary: 'phone (android) wants in' });
    await until(() => inviting.out().includes('phone (android) wants in'));
    // An empty line decides nothing.
    inviting.child.stdin!.write('\n');
    await until(() => inviting.out().split('Pair it?').length === 3);
    expect((await pairings()).invites.list()).toMatchObject([{ state: 'open' }]);
    inviting.child.stdin!.write(`${key}\n`);
    expect(await asked.outcome).toBe(outcome);
    await redeem((await openInvite()).id);
    expect(await inviting.end()).toBe(0);
  });

  test('a question that is settled elsewhere is no more', async () => {
    const inviting = inviteOnScreen(100, '--approve');
    await until(() => inviting.out().includes('You are asked'));
    const first = service.ask({ kind: 'pairing', summary: 'the first' });
    await until(() => inviting.out().includes('the first'));
    await service.cli('deny', first.approval.id);
    const second = service.ask({ kind: 'pairing', summary: 'the second' });
    await until(() => inviting.out().includes('the second'));
    inviting.child.stdin!.write('y\n');
    expect([await first.outcome, await second.outcome]).toEqual(['denied', 'approved']);
    await redeem((await openInvite()).id);
    expect(await inviting.end()).toBe(0);
  });
});

test('where nobody can answer, it is said how', async () => {
  const inviting = invite('--approve');
  await until(() => inviting.err().includes('You are asked'));
  const { approval } = service.ask({ kind: 'pairing', summary: 'phone wants in' });
  await until(() => inviting.err().includes(`phone wants in\n"postern approve ${approval.id}"`));
  await redeem((await openInvite()).id);
  expect(await inviting.end()).toBe(0);
});

describe('devices', () => {
  async function pairOne() {
    const { invites } = await pairings();
    const redemption = await redeem(invites.create({}).invite.id);
    if (redemption.result !== 'paired') throw new Error(redemption.result);
    return redemption.device;
  }
  const list = async () => JSON.parse((await service.cli('devices', '--json')).stdout) as DeviceResource[];

  test.each([true, false])('are listed, renamed and revoked (server: %s)', async (isServed) => {
    const { id, kid } = await pairOne();
    const { devices } = await pairings();
    devices.touch(devices.find(id)!, 'lan');
    if (!isServed) await service.stop();
    expect(await list()).toMatchObject([{ id, name: 'phone', key_id: kid, status: 'active', last_path: 'lan' }]);
    expect((await service.cli('keys')).stdout).toMatch(/^\S+  active .*grant of a device, see "postern devices"/m);
    expect((await service.cli('devices')).stdout).toMatch(
      /^ID .*\n[0-9a-f]{16} {2}active {2}"phone" \("android", "Pixel"\) {2}every agent {2}[-\d]{10} [:\d]{8} {2}[-\d]{10} [:\d]{8} over the network\n$/,
    );
    expect((await service.cli('devices', 'rename', id.slice(0, 6), 'old phone')).code).toBe(0);
    expect(await list()).toMatchObject([{ name: 'old phone' }]);
    expect((await service.cli('devices', 'rename', id, ' ')).code).toBe(2);
    expect(await service.cli('devices', 'revoke', id.slice(0, 6))).toMatchObject({
      code: 0,
      stderr: 'Revoked: "old phone" ("android", "Pixel").\n',
    });
    expect(await service.cli('devices', 'revoke', id)).toMatchObject({ code: 0, stderr: 'It was revoked before.\n' });
    expect(await list()).toMatchObject([{ status: 'revoked' }]);
    expect((await service.cli('keys', 'list')).stdout).toMatch(new RegExp(`^${kid}  revoked`, 'm'));
    expect(await service.cli('devices', 'revoke', 'ffff')).toMatchObject({ code: 1 });
    expect(await auditLines()).toMatch(new RegExp(`device_revoked {2}deviceId="${id}"`));
    expect((await service.cli('audit', 'verify')).code).toBe(0);
  });

  test.each([true, false])('go with their grant: "keys revoke" is enough (server: %s)', async (isServed) => {
    const { id, kid } = await pairOne();
    if (!isServed) await service.stop();
    expect((await service.cli('keys', 'revoke', kid)).code).toBe(0);
    expect(await list()).toMatchObject([{ id, status: 'revoked' }]);
    expect(await auditLines()).toContain(`device_revoked  deviceId="${id}"`);
  });
});

/** Dark ones are true. */
type Modules = readonly (readonly boolean[])[];

function modulesOf(rows: readonly string[]): Modules {
  return rows.flatMap((row) => {
    const characters = Array.from(row);
    return [characters.map((one) => '█▀'.includes(one)), characters.map((one) => '█▄'.includes(one))];
  });
}

/** Four light modules on all sides; an odd number of rows ends with half a character, which is light. */
function withQuietZone({ modules }: QRCode.QRCode): Modules {
  const { size } = modules;
  const at = (row: number, column: number) =>
    row >= 0 && column >= 0 && row < size && column < size && Boolean(modules.get(row, column));
  return Array.from({ length: size + 9 }, (_, row) =>
    Array.from({ length: size + 8 }, (_column, column) => at(row - 4, column - 4)),
  );
}
