/**
 * Makes invites, pairs devices with them, pairs them anew and revokes them without end, and says so of each once it is
 * done: what `pairing-kill.test.ts` kills. `node dist/test/identity/node/pairing-program.js HOME`
 */
import { randomBytes, randomInt } from 'node:crypto';
import { writeSync } from 'node:fs';
import { formatBase64url } from '../../../channel/base64url.ts';
import { description, deviceKeyOf, gateway, openPairings } from './pairings-of-home.ts';

const { devices, invites, keys } = openPairings(process.argv[2] ?? '');
const say = (word: string, ...rest: readonly string[]): void =>
  void writeSync(1, `${JSON.stringify([word, ...rest])}\n`);

for (;;) {
  const { invite } = invites.create({ withBearerKey: randomBytes(1)[0]! < 128 });
  const deviceNumber = randomInt(4);
  const redeem = () =>
    devices.redeem({ inviteId: invite.id, deviceKey: deviceKeyOf(deviceNumber), description, gateway });
  const redemption = redeem();
  if (redemption.result !== 'paired') throw new Error(redemption.result);
  const { device, answer } = redemption;
  say('paired', invite.id, device.id, String(deviceNumber), formatBase64url(answer));
  const die = randomInt(4);
  if (die === 0) await devices.revoke(device.id);
  if (die === 1) await keys.revoke(device.kid);
  if (die < 2) say('revoked', device.id);
}
