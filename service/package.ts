/** Where the package lies, and which version it is. The compiled files are one folder deeper than their sources. */
import { existsSync, readFileSync } from 'node:fs';
import * as z from 'zod';

export const packageRoot = findRoot(new URL('.', import.meta.url));

export const version = z
  .object({ version: z.string() })
  .parse(JSON.parse(readFileSync(new URL('package.json', packageRoot), 'utf8'))).version;

function findRoot(folder: URL): URL {
  return existsSync(new URL('package.json', folder)) ? folder : findRoot(new URL('..', folder));
}
