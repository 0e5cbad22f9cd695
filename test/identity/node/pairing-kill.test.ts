/** `kill -9` at any moment of pairing and revoking: nothing is half paired, and what was acknowledged is so. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findBase64url } from '../../../channel/base64url.ts';
import { listAuditRecords } from '../../../core/audit/audit-log.ts';
import type { DeviceRecord } from '../../../identity/node/device-table.ts';
import type { InviteRecord } from '../../../identity/node/invite-registry.ts';
import { findPairingGrant } from '../../../identity/pairing.ts';
import { isThorough } from '../../support/sampling.ts';
import { temporaryHome } from './home.ts';
import { description, deviceKeyOf, gateway, openPairings, type PairingsOfHome } from './pairings-of-home.ts';
import { auditEvents } from '../../../service/audit-events.ts';

const program = fileURLToPath(new URL('../../../dist/test/identity/node/pairing-program.js', import.meta.url));
const ROUNDS = isThorough ? 200 : 15;
/** On a busy machine, when thorough; it only turns a hang into a failure. */
const LONG = { timeout: 900_000 };
const DEVICES = [0, 1, 2, 3];

let home: string;
let remove: () => void;
beforeEach(() => ({ home, remove } = temporaryHome()));
afterEach(() => remove());

/** Kills a random while after that many acknowledgements. @returns all that were given by then */
async function churn(untilAcknowledged: number): Promise<readonly (readonly string[])[]> {
  const child = spawn(process.execPath, [program, home], { stdio: ['ignore', 'pipe', 'inherit'] });
  const acknowledged: string[][] = [];
  createInterface({ input: child.stdout }).on('line', (line) => {
    acknowledged.push(JSON.parse(line) as string[]);
    if (acknowledged.length === untilAcknowledged) setTimeout(() => child.kill('SIGKILL'), Math.random() * 20);
  });
  const [, signal] = (await once(child, 'close')) as [number | null, string | null];
  expect(signal).toBe('SIGKILL');
  return acknowledged;
}

/** Everything that must be there together, or not at all. */
function expectWhole({ database, devices, invites, keys, verifyAudit }: PairingsOfHome): void {
  const all = devices.list();
  const rows = database
    .prepare<[], { id: string; kid: string; bearer: string | null; hasPsk: 0 | 1 }>(
      'SELECT id, kid, bearer_kid AS bearer, psk IS NOT NULL AS hasPsk FROM devices',
    )
    .all();
  // No key without its device, no device without its keys.
  const ofDevices = rows.flatMap(({ kid, bearer }) => (bearer === null ? [kid] : [kid, bearer]));
  expect(
    keys
      .list()
      .map(({ kid }) => kid)
      .toSorted(),
  ).toEqual(ofDevices.toSorted());
  const invitesOf = new Map<string, InviteRecord[]>();
  for (const invite of invites.list()) {
    if (invite.deviceId !== undefined)
      invitesOf.set(invite.deviceId, [...(invitesOf.get(invite.deviceId) ?? []), invite]);
  }
  for (const { id, kid, bearer, hasPsk } of rows) {
    const isRevoked = keys.find(kid)!.revokedAtS !== undefined;
    expect(hasPsk === 0, 'a psk is there exactly as long as its device counts').toBe(isRevoked);
    if (isRevoked && bearer !== null) expect(keys.find(bearer)!.revokedAtS).toBeDefined();
    expect(invitesOf.get(id)).toMatchObject([{ state: isRevoked ? 'closed' : 'used' }]);
  }
  const answers = database
    .prepare('SELECT count(*) FROM invites WHERE (answer IS NOT NULL) <> (used_by IS NOT NULL AND closed_at_s IS NULL)')
    .pluck();
  expect(answers.get(), 'used and without an answer, or the other way round').toBe(0);
  // Of each static key one device counts at most.
  for (const number of DEVICES) {
    const counting = all.filter(({ staticKey, revokedAtS }) => staticKey[0] === number && revokedAtS === undefined);
    expect(counting.length).toBeLessThanOrEqual(1);
    expect(devices.findByKey(deviceKeyOf(number))).toEqual(counting[0]);
    expect(devices.findPsk(deviceKeyOf(number)) === undefined).toBe(counting.length === 0);
  }
  expect(verifyAudit()).toMatchObject({ intact: true });
  const told = listAuditRecords({ database, events: auditEvents }, { limit: 1_000_000 }).map(({ entry }) =>
    entry?.kind === 'device_paired' || entry?.kind === 'device_revoked' ? `${entry.kind} ${entry.deviceId}` : '',
  );
  expect(told.filter((line) => line !== '').toSorted()).toEqual(all.flatMap(eventsOf).toSorted());
}

function eventsOf({ id, revokedAtS }: DeviceRecord): readonly string[] {
  return [`device_paired ${id}`, ...(revokedAtS === undefined ? [] : [`device_revoked ${id}`])];
}

test(`${ROUNDS} times: a device is paired with all that belongs to it, or not at all`, LONG, async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const acknowledged = await churn(1 + Math.floor(Math.random() * 20));
    const pairings = openPairings(home);
    const { database, devices, invites, keys } = pairings;
    expectWhole(pairings);
    const revoked = new Set(acknowledged.filter(([word]) => word === 'revoked').map(([, id]) => id));
    for (const [word, inviteId, deviceId, number, answer] of acknowledged) {
      if (word !== 'paired') continue;
      const deviceKey = deviceKeyOf(Number(number));
      const device = devices.find(deviceId!)!;
      const bytes = findBase64url(answer!)!;
      if (revoked.has(deviceId)) expect(device.revokedAtS).toBeDefined();
      const again = devices.redeem({ inviteId: inviteId!, deviceKey, description, gateway });
      if (device.revokedAtS === undefined) {
        expect(again).toMatchObject({ result: 'repeated', answer: bytes });
        expect(keys.verify(findPairingGrant(bytes)!.grant, deviceKey).counts).toBe(true);
      } else expect(again).toEqual({ result: 'over' });
    }
    for (const { id, state } of invites.list()) if (state === 'open') invites.close(id);
    database.close();
  }
});
