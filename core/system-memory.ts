/**
 * How much memory a new process could have now without anything being killed or swapped out. On Linux that is what the
 * kernel reckons to be available, or less where a control group (a container, a systemd unit) sets a limit; on macOS
 * what is free or was not used recently, since there next to nothing is ever free.
 *
 * Not `process.availableMemory()`: that counts a control group's page cache as used up, and so finds next to nothing
 * available as soon as a large model file was read once.
 *
 * https://docs.kernel.org/filesystems/proc.html#meminfo
 * https://docs.kernel.org/admin-guide/cgroup-v2.html#memory-interface-files
 * https://docs.kernel.org/admin-guide/cgroup-v1/memory.html
 */
import { readFile } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { freemem } from 'node:os';

export interface MemorySource {
  /** The text of a file of the system, undefined where there is none. */
  readText(path: string): Promise<string | undefined>;
  /** What macOS' `vm_stat` prints; undefined on other systems. */
  vmStat(): Promise<string | undefined>;
  /** Asked where the system tells neither. */
  freeBytes(): number;
}

const thisMachine: MemorySource = {
  readText: (path) => readFile(path, 'utf8').catch(() => undefined),
  vmStat: async () => (process.platform === 'darwin' ? runVmStat() : undefined),
  freeBytes: freemem,
};

function runVmStat(): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile('/usr/bin/vm_stat', (error, stdout) => resolve(error === null ? stdout : undefined));
  });
}

/** Zero where a limit is exceeded already. Memory that a resident model occupies is not available. */
export async function availableMemoryBytes(source: MemorySource = thisMachine): Promise<number> {
  const system = kibibytes(await source.readText('/proc/meminfo'), 'MemAvailable:');
  if (system === undefined) return pagesAvailable(await source.vmStat()) ?? source.freeBytes();
  const groups = controlGroups((await source.readText('/proc/self/cgroup')) ?? '');
  const rooms = await Promise.all(groups.map((group) => roomIn(group, source)));
  return Math.max(0, Math.min(system, ...rooms));
}

/** Pages that are free, and those that the system would reuse first. */
function pagesAvailable(vmStat: string | undefined): number | undefined {
  const pageBytes = bytes(/page size of (\d+) bytes/.exec(vmStat ?? '')?.[1]);
  const [free, speculative, inactive] = ['free', 'speculative', 'inactive'].map((kind) =>
    bytes(new RegExp(`^Pages ${kind}:\\s+(\\d+)\\.$`, 'm').exec(vmStat ?? '')?.[1]),
  );
  if (pageBytes === undefined || free === undefined || inactive === undefined) return undefined;
  return pageBytes * (free + (speculative ?? 0) + inactive);
}

interface ControlGroup {
  readonly folder: string;
  readonly files: GroupFiles;
}

interface GroupFiles {
  readonly mount: string;
  readonly limit: string;
  readonly usage: string;
  /** Lines of `memory.stat` with page cache, which the kernel gives up before it kills anything. */
  readonly reclaimable: readonly string[];
}

const VERSION_1: GroupFiles = {
  mount: '/sys/fs/cgroup/memory',
  limit: 'memory.limit_in_bytes',
  usage: 'memory.usage_in_bytes',
  reclaimable: ['total_active_file', 'total_inactive_file'],
};
const VERSION_2: GroupFiles = {
  mount: '/sys/fs/cgroup',
  limit: 'memory.max',
  usage: 'memory.current',
  reclaimable: ['active_file', 'inactive_file'],
};

/**
 * The groups that this process is in, each with all those above it: the limit of any of them holds. In a container the
 * path may be the host's, of which only the top is to be seen here; what is not there has no limit.
 *
 * A line is `<hierarchy>:<controllers>:<path>`; version 2 is the one without controllers.
 */
function controlGroups(text: string): readonly ControlGroup[] {
  return text.split('\n').flatMap((line) => {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) return [];
    if (controllers !== '' && !controllers.split(',').includes('memory')) return [];
    const files = controllers === '' ? VERSION_2 : VERSION_1;
    const names = path.split('/').filter((name) => name !== '' && name !== '..');
    return Array.from({ length: names.length + 1 }, (_, depth) => ({
      folder: [files.mount, ...names.slice(0, depth)].join('/'),
      files,
    }));
  });
}

async function roomIn({ folder, files }: ControlGroup, source: MemorySource): Promise<number> {
  const limit = bytes(await source.readText(`${folder}/${files.limit}`));
  const usage = bytes(await source.readText(`${folder}/${files.usage}`));
  if (limit === undefined || usage === undefined) return Infinity;
  const stat = await source.readText(`${folder}/memory.stat`);
  const reclaimable = files.reclaimable.reduce((sum, name) => sum + (statValue(stat, name) ?? 0), 0);
  return limit - usage + Math.min(reclaimable, usage);
}

/** `max`, and nothing at all, are no limit. */
function bytes(text: string | undefined): number | undefined {
  const digits = text?.trim() ?? '';
  return /^\d+$/.test(digits) ? Number(digits) : undefined;
}

function statValue(text: string | undefined, name: string): number | undefined {
  const line = text?.split('\n').find((one) => one.startsWith(`${name} `));
  return bytes(line?.slice(name.length));
}

function kibibytes(text: string | undefined, name: string): number | undefined {
  const line = text?.split('\n').find((one) => one.startsWith(name));
  const value = bytes(line?.slice(name.length).replace('kB', ''));
  return value === undefined ? undefined : value * 1024;
}
