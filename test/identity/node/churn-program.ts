/**
 * Makes and revokes access keys without end, and says so of each once it is done: what `kill.test.ts` kills.
 * `node dist/test/identity/node/churn-program.js HOME`
 */
import { randomBytes } from 'node:crypto';
import { writeSync } from 'node:fs';
import { openKeys } from './keys-of-home.ts';

const { keys } = openKeys(process.argv[2] ?? '');
const say = (word: string, token: string): void => void writeSync(1, `${word} ${token}\n`);

for (;;) {
  const { token, key } = keys.create({});
  say('created', token);
  if (randomBytes(1)[0]! < 128) {
    await keys.revoke(key.kid);
    say('revoked', token);
  }
}
