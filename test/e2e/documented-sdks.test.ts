/** The programs of `docs/clients.md`, run as they stand, against the service and the built-in model. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLoneMachine } from '../support/network.ts';
import { has, networkNamespaces } from '../support/requirements.ts';
import { startServer, type TestServer } from '../support/server.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url);

/** By the package whose documentation they are. */
const programs = [...readFileSync(new URL('docs/clients.md', root), 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(
  ([, program = '']) => ({ name: /from '([^']+)'/.exec(program)?.[1], program }),
);

describe.runIf(has(networkNamespaces))('a documented program runs as it stands', () => {
  let machine: Awaited<ReturnType<typeof createLoneMachine>>;
  let server: TestServer;

  beforeAll(async () => {
    machine = await createLoneMachine();
    server = await startServer({ within: machine.within, args: ['--port', '1337'] });
  });
  afterAll(async () => {
    await server.stop();
    await machine.remove();
  });

  test.each(programs)('$name', async ({ program }) => {
    const [command, ...args] = [...machine.within, process.execPath, '--input-type=module', '--eval', program];
    const { stdout } = await run(command, args, { cwd: root });
    expect(stdout).toBe('The capital of France is Paris.\n');
  });
});
