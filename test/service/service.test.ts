/** A start that fails leaves nothing behind, and one that succeeds ends in order. */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveSettings, type Settings } from '../../service/settings.ts';
import { startService } from '../../service/service.ts';
import { StartError, type ServiceContext } from '../../service/start.ts';

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'postern-start-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const environment = { SVC_IDENTITY_STORE: 'vault' };
const context = (): ServiceContext => ({ home, environment, say: () => undefined });
const settingsWith = (port: number): Settings =>
  resolveSettings({
    flags: { 'server.port': port, 'models.folder': join(home, 'no-models'), 'models.discover': false },
    environment,
    file: {},
  }).settings;

/** Files of the home that this process has open. */
const openFiles = () =>
  readdirSync('/proc/self/fd')
    .map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        return '';
      }
    })
    .filter((path) => path.startsWith(home));

test.runIf(process.platform === 'linux')(
  'a port that is taken leaves nothing open, and the next start works',
  async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    const { port } = taken.address() as AddressInfo;
    const failing = startService(settingsWith(port), context());
    await expect(failing).rejects.toThrow(StartError);
    await expect(failing).rejects.toThrow(`port ${port} is in use at 127.0.0.1`);
    expect(openFiles()).toEqual([]);
    taken.close();
    const service = await startService(settingsWith(0), context());
    expect(openFiles()).not.toEqual([]);
    await service.identity.begin();
    await service.stop(AbortSignal.abort());
    expect(openFiles()).toEqual([]);
  },
);

test('a service that is told to stop ends what waits for its owner, and then no answer is waited for', async () => {
  const service = await startService(settingsWith(0), context());
  await service.identity.begin();
  const asked = service.approvals.request({ kind: 'tool_permission', summary: 'run "ls"', lifetimeMs: 600_000 });
  const events = await fetch(`http://127.0.0.1:${service.port}/admin/events`);
  const read = events.text();
  const { signal: never } = new AbortController();
  await service.stop(never);
  expect(await asked?.outcome).toBe('cancelled');
  await read;
});
