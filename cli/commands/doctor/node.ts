/** Which Node runs the service, and whose it is. */
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../../../service/package.ts';
import type { Check } from './check.ts';

export const node: Check = {
  name: 'node',
  run() {
    const isFetched = process.execPath.startsWith(fileURLToPath(new URL('.node/', packageRoot)));
    const from = isFetched ? 'fetched by Postern for itself' : process.execPath;
    return { state: 'ok', message: `${process.versions.node} (${from})` };
  },
};
