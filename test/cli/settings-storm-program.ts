/**
 * Changes a setting without end, and says so of each change once it is done: what `settings-storm.test.ts` kills. Ends by
 * itself when what it wrote does not stand any more.
 * `node dist/test/cli/settings-storm-program.js HOME NAME FIRST_VALUE`
 */
import { writeSync } from 'node:fs';
import { changeSetting } from '../../cli/recorded-setting.ts';
import { isSettingName, readSettingsFile } from '../../service/settings.ts';

const [, , home = '', name = '', first = ''] = process.argv;
if (!isSettingName(name)) throw new RangeError(`${name} is no setting`);

async function requireValue(value: number): Promise<void> {
  const found = (await readSettingsFile(home))[name];
  if (found !== value) throw new Error(`wrote ${value}, found ${String(found)}`);
}

for (let value = Number(first); ; value += 1) {
  if (value > Number(first)) await requireValue(value - 1);
  await changeSetting({ home, environment: {} }, name, value);
  writeSync(1, `${value}\n`);
}
