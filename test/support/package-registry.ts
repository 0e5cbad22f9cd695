/** An npm registry with a few packages, each in one version, which may lie about them, or stall. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

export interface PackedPackage {
  readonly name: string;
  readonly version: string;
  readonly tarball: Buffer;
  readonly integrity: string;
}

/** @param files by their path, each executable */
export function pack(name: string, version: string, files: Readonly<Record<string, string>>): PackedPackage {
  const folder = mkdtempSync(join(tmpdir(), 'postern-pack-'));
  const manifest = JSON.stringify({ name, version });
  for (const [path, content] of Object.entries({ ...files, 'package.json': manifest })) {
    mkdirSync(dirname(join(folder, 'package', path)), { recursive: true });
    writeFileSync(join(folder, 'package', path), content, { mode: 0o755 });
  }
  spawnSync('tar', ['-czf', 'package.tgz', 'package'], { cwd: folder });
  const tarball = readFileSync(join(folder, 'package.tgz'));
  rmSync(folder, { recursive: true });
  return { name, version, tarball, integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}` };
}

export interface PackageRegistry {
  readonly url: string;
  /** Paths, in the order in which they were asked for: `/name`, or `/name.tgz` for the package itself. */
  readonly requests: readonly string[];
  /** While set, downloads begin and don't go on. */
  stalls: boolean;
  readonly close: () => Promise<void>;
}

/** @param packages whose tarballs are sent; `integrity` is what the registry says of each, true or not */
export async function startRegistry(...packages: readonly PackedPackage[]): Promise<PackageRegistry> {
  const requests: string[] = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '');
    requests.push(path);
    const served = packages.find(({ name }) => path === `/${name}` || path === `/${name}.tgz`);
    if (served === undefined) return void response.writeHead(404).end('{}');
    if (!path.endsWith('.tgz')) return void response.end(JSON.stringify(packument(served, registry.url)));
    response.writeHead(200, { 'content-length': served.tarball.length });
    if (registry.stalls) response.write(served.tarball.subarray(0, 10));
    else response.end(served.tarball);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const registry: PackageRegistry = {
    url: `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    requests,
    stalls: false,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return registry;
}

function packument({ name, version, integrity }: PackedPackage, url: string): unknown {
  const release = { name, version, dist: { tarball: `${url}/${name}.tgz`, integrity } };
  return { name, 'dist-tags': { latest: version }, versions: { [version]: release } };
}
