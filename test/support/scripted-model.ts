/** The service as it was built, but for its model runner: one that answers from a script stands where the engine would. */
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { SCRIPT_VARIABLE, type Script } from './script.ts';
import { startServer, type TestServer } from './server.ts';

const root = new URL('../../', import.meta.url);
const scriptedRunner = new URL('dist/test/support/scripted-runner-program.js', root);

type ServerOptions = Pick<NonNullable<Parameters<typeof startServer>[0]>, 'within' | 'args'>;

export async function startWithScriptedModel(script: Script, options: ServerOptions = {}): Promise<TestServer> {
  const folder = await mkdtemp(join(tmpdir(), 'postern-scripted-'));
  await cp(new URL('dist/postern', root), join(folder, 'dist/postern'), { recursive: true });
  for (const name of ['package.json', 'models', 'node_modules']) {
    await symlink(new URL(name, root), join(folder, name));
  }
  const runner = join(folder, 'dist/core/inference/local/runner/main.js');
  await mkdir(dirname(runner), { recursive: true });
  await writeFile(runner, `import '${scriptedRunner.href}';\n`);
  const server = await startServer({
    ...options,
    program: [join(folder, 'dist/postern/bin.js'), 'serve'],
    environment: { [SCRIPT_VARIABLE]: JSON.stringify(script) },
  });
  return {
    ...server,
    async stop() {
      await server.stop();
      await rm(folder, { recursive: true });
    },
  };
}
