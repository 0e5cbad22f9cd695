/**
 * Changes a setting without end, and says so of each change once it is done: what `settings-storm.test.ts` kills.
 * `node dist/test/cli/settings-storm-program.js HOME NAME FIRST_VALUE`
 */
import { writeSync } from 'node:fs';
import { changeSetting } from '../../cli/recorded-setting.ts';
import { isSettingName } from '../../core/config/settings.ts';

const [, , home = '', name = '', first = ''] = process.argv;
if (!isSettingName(name)) throw new RangeError(`${name} is no setting`);

for (let value = Number(first); ; value += 1) {
  await changeSetting({ home, environment: {} }, name, value);
  writeSync(1, `${value}\n`);
}
