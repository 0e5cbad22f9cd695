/** A service and a device of the SDK that is to be paired with it by a code, with whoever stands between them. */
import { expect, onTestFinished } from 'vitest';
import type { PairedDevice, SecretStorage } from '../../clients/sdk/index.ts';
import { pairByCode } from '../../clients/sdk/pair-by-code.ts';
import type { DeviceRecord } from '../../identity/node/device-table.ts';
import { standBetween, type Between, type Meddle } from './between.ts';
import { codesAt } from './raw-discovery.ts';
import { removeHome, startServiceHere, temporaryHome, type ServiceHere } from './service-here.ts';
import { until } from './wait.ts';

export const description = { name: 'laptop', platform: 'linux' };

export class CodePairing {
  service: ServiceHere;
  /** Under which names the device has stored something. */
  readonly writes: string[] = [];
  readonly storage: SecretStorage;
  readonly #home: string;

  private constructor(home: string, service: ServiceHere) {
    const stored = new Map<string, string>();
    this.#home = home;
    this.service = service;
    this.storage = {
      read: async (name) => stored.get(name),
      write: async (name, text) => {
        this.writes.push(name);
        stored.set(name, text);
      },
      erase: async (name) => void stored.delete(name),
    };
  }

  static async start(): Promise<CodePairing> {
    const home = await temporaryHome();
    return new CodePairing(home, await startServiceHere(home));
  }

  /** With its setting changed. On the same port, as its device knows it. */
  async restart(flags: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const { port } = this.service.running;
    await this.service.stop();
    this.service = await startServiceHere(this.#home, { 'server.port': port, ...flags });
  }

  async end(): Promise<void> {
    await this.service.stop();
    await removeHome(this.#home);
  }

  /** As the owner reads it. */
  shownCode(): Promise<string> {
    return until(() => codesAt(this.service).at(-1));
  }

  pairAt(url: string, askCode: (tryNumber: number) => Promise<string> = () => this.shownCode()): Promise<PairedDevice> {
    return pairByCode(url, { device: description, storage: this.storage, askCode });
  }

  deny(): void {
    this.service.running.approvals.decide(this.service.running.approvals.list()[0]!.id, 'denied');
  }

  async devices(): Promise<readonly DeviceRecord[]> {
    return (await this.service.running.identity.openPairings()).devices.list();
  }

  /** The owner is not asked for who has left. */
  expectNoQuestion(): void {
    expect(this.service.running.approvals.list()).toEqual([]);
  }

  /** On failure neither side has anything of it. */
  async expectNothing(): Promise<void> {
    expect([this.writes, await this.devices()]).toEqual([[], []]);
  }

  async between(meddle: Meddle): Promise<Between> {
    const one = await standBetween(this.service.url, meddle);
    onTestFinished(() => one.close());
    return one;
  }

  /** A gateway that is none, and answers what it likes. */
  fake(answer: (path: string, body: Buffer) => Uint8Array): Promise<Between> {
    return this.between(async ({ path, body }) => ({ status: 200, body: answer(path, body) }));
  }
}
