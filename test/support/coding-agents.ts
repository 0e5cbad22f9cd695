/** The coding agents of `test/agents`, installed from npm once for each state of its lock file. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Requirement } from './requirements.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url).pathname;
const installer = join(root, 'test/support/install-agents-program.mjs');

interface CodingAgents extends Requirement {
  /** The folder of their commands. */
  readonly bin: string;
}

/** @throws where npm reaches its registry and yet can't install what the lock file names */
export async function installCodingAgents(): Promise<CodingAgents> {
  const lock = await readFile(join(root, 'test/agents/package-lock.json'));
  const folder = join(root, '.cache', `agents-${createHash('sha256').update(lock).digest('hex').slice(0, 16)}`);
  const isMet = existsSync(folder) || (await install(folder));
  return {
    bin: join(folder, 'node_modules/.bin'),
    isMet,
    remedy: 'The coding agents come from npm, which reaches no registry.',
  };
}

/** @returns whether there was a registry to install them from */
async function install(folder: string): Promise<boolean> {
  try {
    await run(process.execPath, [installer, folder]);
    return true;
  } catch (error) {
    if (NO_NETWORK.test(String(error))) return false;
    throw error;
  }
}

/** How npm says so. */
const NO_NETWORK = /\b(EAI_AGAIN|ECONNREFUSED|ECONNRESET|ENETUNREACH|ENOTFOUND|ETIMEDOUT|ERR_SOCKET_TIMEOUT)\b/;
