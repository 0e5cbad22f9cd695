/**
 * Changes a setting without end, and says so of each change once it is done: what `settings-storm.test.ts` kills.
 * `node dist/test/cli/settings-storm-program.js HOME FIRST_PORT`
 */
import { writeSync } from 'node:fs';
import { changeSetting } from '../../cli/recorded-setting.ts';

const [, , home = '', first = ''] = process.argv;

for (let port = Number(first); ; port += 1) {
  await changeSetting({ home, environment: {} }, 'server.port', port);
  writeSync(1, `${port}\n`);
}
