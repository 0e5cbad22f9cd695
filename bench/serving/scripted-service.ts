/** The service as it was built, but for its model runner: a scripted one stands where the real one would be started. */
import { cp, mkdtemp, rm, symlink, copyFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { root, startService, type Service } from './processes.ts';

export async function withScriptedRunner(settings: Readonly<Record<string, unknown>>): Promise<Service> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-bench-built-'));
  await cp(fileURLToPath(new URL('dist', root)), join(folder, 'dist'), { recursive: true });
  for (const name of ['package.json', 'models', 'node_modules']) {
    await symlink(fileURLToPath(new URL(name, root)), join(folder, name));
  }
  const scripted = fileURLToPath(new URL('./scripted-runner.js', import.meta.url));
  await copyFile(scripted, join(folder, 'dist/core/inference/local/runner/main.js'));
  const service = await startService({ program: join(folder, 'dist/postern/bin.js'), settings });
  return {
    ...service,
    async stop() {
      await service.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
