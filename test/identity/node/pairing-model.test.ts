/** Whatever owners and devices do, in whatever order: the registries answer as a model of ten lines does. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { InviteRecord } from '../../../identity/node/invite-registry.ts';
import { findPairingGrant } from '../../../identity/pairing.ts';
import { runs } from '../../support/sampling.ts';
import { temporaryHome } from './home.ts';
import { description, deviceKeyOf, gateway, openPairings, type PairingsOfHome } from './pairings-of-home.ts';

interface InviteModel {
  readonly id: string;
  readonly expiresAtS: number;
  readonly withBearerKey: boolean;
  /** How many devices had been paired when it was made. */
  readonly devicesBefore: number;
  isClosed: boolean;
  /** Its answer, and whom it was given. */
  use?: { readonly device: DeviceModel; readonly answer: Uint8Array };
}
interface DeviceModel {
  readonly id: string;
  readonly number: number;
  readonly invite: InviteModel;
  isRevoked: boolean;
}

const pick = fc.nat({ max: 2 });
const number = fc.nat({ max: 1 });
const step = fc.oneof(
  { weight: 3, arbitrary: fc.record({ do: fc.constant('create' as const), withBearerKey: fc.boolean() }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('redeem' as const), pick, number }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('close' as const), pick }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('revoke' as const, 'revoke grant' as const), pick }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('wait' as const), seconds: fc.constantFrom(1, 30, 59, 60) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('restart' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

class World {
  readonly #home = temporaryHome();
  readonly #invites: InviteModel[] = [];
  readonly #devices: DeviceModel[] = [];
  #nowS = 1_700_000_000;
  #real: PairingsOfHome = this.#open();

  #open(): PairingsOfHome {
    return openPairings(this.#home.home, { now: () => this.#nowS * 1000 });
  }

  end(): void {
    this.#real.database.close();
    this.#home.remove();
  }

  async take(one: Step): Promise<void> {
    const { invites, devices, keys } = this.#real;
    if (one.do === 'wait') this.#nowS += one.seconds;
    if (one.do === 'restart') {
      this.#real.database.close();
      this.#real = this.#open();
    }
    if (one.do === 'create') {
      const isFull = this.#invites.filter((invite) => this.#stateOf(invite) === 'open').length >= 8;
      const create = () => invites.create({ lifetimeS: 60, withBearerKey: one.withBearerKey });
      if (isFull) return expect(create).toThrow('open already');
      const { id, expiresAtS } = create().invite;
      const devicesBefore = this.#devices.length;
      this.#invites.push({ id, expiresAtS, withBearerKey: one.withBearerKey, devicesBefore, isClosed: false });
    }
    const invite = 'pick' in one ? this.#invites.at(-1 - one.pick) : undefined;
    const device = 'pick' in one ? this.#devices.at(-1 - one.pick) : undefined;
    if (one.do === 'redeem' && invite !== undefined) this.#redeem(invite, one.number);
    if (one.do === 'close' && invite !== undefined) {
      expect(invites.close(invite.id)).toBe(this.#stateOf(invite) === 'open');
      if (invite.use === undefined && this.#nowS < invite.expiresAtS) invite.isClosed = true;
    }
    if (one.do.startsWith('revoke') && device !== undefined) {
      const { result } = await (one.do === 'revoke'
        ? devices.revoke(device.id)
        : keys.revoke(devices.find(device.id)!.kid));
      expect(result).toBe(device.isRevoked ? 'already' : 'revoked');
      this.#revoke(device);
    }
  }

  #revoke(device: DeviceModel): void {
    device.isRevoked = true;
    device.invite.isClosed = true;
  }

  #stateOf({ isClosed, use, expiresAtS }: InviteModel): InviteRecord['state'] {
    if (isClosed) return 'closed';
    if (use !== undefined) return 'used';
    return this.#nowS >= expiresAtS ? 'expired' : 'open';
  }

  #previewed(invite: InviteModel, deviceNumber: number): 'new' | 'repeated' | 'used' | 'over' {
    if (invite.isClosed || this.#nowS >= invite.expiresAtS) return 'over';
    if (invite.use === undefined) return this.#isOvertaken(invite, deviceNumber) ? 'over' : 'new';
    return invite.use.device.number === deviceNumber ? 'repeated' : 'used';
  }

  /** An invite does not take the place of a pairing that came after it, nor bring back one that was revoked. */
  #isOvertaken({ devicesBefore }: InviteModel, deviceNumber: number): boolean {
    return this.#devices.slice(devicesBefore).some((one) => one.number === deviceNumber);
  }

  #redeem(invite: InviteModel, deviceNumber: number): void {
    const { devices } = this.#real;
    const deviceKey = deviceKeyOf(deviceNumber);
    const previewed = this.#previewed(invite, deviceNumber);
    expect(devices.preview(invite.id, deviceKey)).toBe(previewed);
    const redemption = devices.redeem({ inviteId: invite.id, deviceKey, description, gateway });
    expect(redemption.result).toBe(previewed === 'new' ? 'paired' : previewed);
    if (redemption.result === 'repeated') expect(redemption.answer).toEqual(invite.use!.answer);
    if (redemption.result !== 'paired') return;
    const before = this.#devices.find((one) => one.number === deviceNumber && !one.isRevoked);
    if (before !== undefined) this.#revoke(before);
    const device = { id: redemption.device.id, number: deviceNumber, invite, isRevoked: false };
    invite.use = { device, answer: redemption.answer };
    this.#devices.push(device);
  }

  /** Everything that can be asked gives what the model says. */
  check(): void {
    const { invites, devices, keys } = this.#real;
    for (const invite of this.#invites) expect(invites.find(invite.id)?.state).toBe(this.#stateOf(invite));
    expect(
      devices
        .list()
        .map(({ id }) => id)
        .toSorted(),
    ).toEqual(this.#devices.map(({ id }) => id).toSorted());
    for (const { id, number: deviceNumber, isRevoked, invite } of this.#devices) {
      expect(devices.find(id)!.revokedAtS !== undefined).toBe(isRevoked);
      const { grant, bearerKey } = findPairingGrant(invite.use!.answer)!;
      expect(keys.verify(grant, deviceKeyOf(deviceNumber)).counts).toBe(!isRevoked);
      expect(bearerKey !== undefined).toBe(invite.withBearerKey);
      if (bearerKey !== undefined) expect(keys.verify(bearerKey).counts).toBe(!isRevoked);
    }
    for (const deviceNumber of [0, 1]) {
      const counting = this.#devices.find((one) => one.number === deviceNumber && !one.isRevoked);
      expect(devices.findByKey(deviceKeyOf(deviceNumber))?.id).toBe(counting?.id);
      const psk = counting && findPairingGrant(counting.invite.use!.answer)!.psk;
      expect(devices.findPsk(deviceKeyOf(deviceNumber))).toEqual(psk);
    }
  }
}

test('the registries do as the model does', { timeout: 900_000 }, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }), async (steps) => {
      const world = new World();
      try {
        for (const one of steps) {
          await world.take(one);
          world.check();
        }
      } finally {
        world.end();
      }
    }),
    runs(800),
  );
});
