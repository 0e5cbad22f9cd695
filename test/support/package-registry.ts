/** An npm registry with one package in one version, which may lie about it, or stall. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface NodePackage {
  readonly name: string;
  readonly version: string;
  readonly tarball: Buffer;
  readonly integrity: string;
}

/** A package as the real ones are, but with a script in the place of the binary. */
export function packNode(name: string, version: string, script: string): NodePackage {
  const folder = mkdtempSync(join(tmpdir(), 'postern-pack-'));
  mkdirSync(join(folder, 'package', 'bin'), { recursive: true });
  writeFileSync(join(folder, 'package', 'package.json'), JSON.stringify({ name, version }));
  writeFileSync(join(folder, 'package', 'bin', 'node'), script);
  chmodSync(join(folder, 'package', 'bin', 'node'), 0o755);
  spawnSync('tar', ['-czf', 'package.tgz', 'package'], { cwd: folder });
  const tarball = readFileSync(join(folder, 'package.tgz'));
  rmSync(folder, { recursive: true });
  return { name, version, tarball, integrity: `sha512-${createHash('sha512').update(tarball).digest('base64')}` };
}

export interface PackageRegistry {
  readonly url: string;
  /** Paths, in the order in which they were asked for. */
  readonly requests: readonly string[];
  /** While set, downloads begin and don't go on. */
  stalls: boolean;
  readonly close: () => Promise<void>;
}

/** @param served whose tarball is sent; `integrity` is what the registry says of it, true or not */
export async function startRegistry(served: NodePackage): Promise<PackageRegistry> {
  const requests: string[] = [];
  const server: Server = createServer((request, response) => {
    requests.push(request.url ?? '');
    if (request.url !== '/package.tgz') return void response.end(JSON.stringify(packument(served, registry.url)));
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

function packument({ name, version, integrity }: NodePackage, url: string): unknown {
  const release = { name, version, dist: { tarball: `${url}/package.tgz`, integrity } };
  return { name, 'dist-tags': { latest: version }, versions: { [version]: release } };
}
