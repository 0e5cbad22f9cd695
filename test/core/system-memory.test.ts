import { totalmem } from 'node:os';
import { expect, test } from 'vitest';
import { availableMemoryBytes } from '../../core/system-memory.ts';

const MEMINFO = 'MemTotal:       24684092 kB\nMemFree:  1 kB\nMemAvailable:   20000 kB\nBuffers: 2 kB\n';
const SYSTEM = 20_000 * 1024;

const available = (files: Record<string, string>) =>
  availableMemoryBytes({
    readText: async (path) => files[path],
    vmStat: async () => files['vm_stat'],
    freeBytes: () => 42,
  });

test('this machine has some, and not more than there is', async () => {
  expect(await availableMemoryBytes()).toBeGreaterThan(0);
  expect(await availableMemoryBytes()).toBeLessThanOrEqual(totalmem());
});

test('what the kernel reckons to be available; elsewhere what is free', async () => {
  expect(await available({ '/proc/meminfo': MEMINFO })).toBe(SYSTEM);
  expect(await available({})).toBe(42);
  expect(await available({ '/proc/meminfo': 'nonsense' })).toBe(42);
});

test('on macOS what is free, or has not been used of late', async () => {
  const vmStat = [
    'Mach Virtual Memory Statistics: (page size of 16384 bytes)',
    'Pages free:                                   10.',
    'Pages active:                             200000.',
    'Pages inactive:                              200.',
    'Pages speculative:                             5.',
    'Pages purgeable:                              99.',
    '"Translation faults":                   123456.',
  ].join('\n');
  expect(await available({ vm_stat: vmStat })).toBe(215 * 16_384);
  expect(await available({ vm_stat: 'nonsense' })).toBe(42);
});

const v2 = { '/proc/meminfo': MEMINFO, '/proc/self/cgroup': '0::/user.slice/postern.service\n' };
const group = (path: string, max: string, current: string, stat = '') => ({
  [`/sys/fs/cgroup${path}/memory.max`]: max,
  [`/sys/fs/cgroup${path}/memory.current`]: current,
  [`/sys/fs/cgroup${path}/memory.stat`]: stat,
});

test.each<[string, Record<string, string>, number]>([
  ['no limit', group('/user.slice/postern.service', 'max\n', '500\n'), SYSTEM],
  ['a limit beyond what is available', group('/user.slice/postern.service', '9999999999', '0'), SYSTEM],
  ['a limit', group('/user.slice/postern.service', '10000\n', '4000\n'), 6000],
  [
    'a limit, and page cache that would be given up',
    group(
      '/user.slice/postern.service',
      '10000',
      '9000',
      'anon 1000\nactive_file 3000\ninactive_file 5000\nfile 8000\n',
    ),
    9000,
  ],
  [
    'a limit further up',
    { ...group('/user.slice/postern.service', 'max', '1'), ...group('/user.slice', '3000', '1000') },
    2000,
  ],
  ['a limit seen from within a container', group('', '7000', '1000'), 6000],
  ['a limit that is exceeded', group('/user.slice', '1000', '2000'), 0],
  ['a file that says nothing', group('/user.slice', 'many', ''), SYSTEM],
])('control groups, version 2: %s', async (_, files, expected) => {
  expect(await available({ ...v2, ...files })).toBe(expected);
});

test.each<[string, string, number]>([
  ['with the controller by itself', '9:name=systemd:/\n4:memory:/a/b\n0::/\n', 5000],
  ['with several controllers', '4:cpu,memory:/a/b\n', 5000],
  ['of another controller', '4:cpu:/a/b\n', SYSTEM],
])('control groups, version 1: %s', async (_, cgroup, expected) => {
  const folder = '/sys/fs/cgroup/memory';
  const files = {
    [`${folder}/a/b/memory.limit_in_bytes`]: '9223372036854771712\n',
    [`${folder}/a/b/memory.usage_in_bytes`]: '1000\n',
    [`${folder}/a/memory.limit_in_bytes`]: '8000\n',
    [`${folder}/a/memory.usage_in_bytes`]: '4000\n',
    [`${folder}/a/memory.stat`]: 'inactive_file 9\ntotal_inactive_file 700\ntotal_active_file 300\n',
  };
  expect(await available({ '/proc/meminfo': MEMINFO, '/proc/self/cgroup': cgroup, ...files })).toBe(expected);
});
