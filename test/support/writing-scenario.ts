/**
 * What a service does that writes, one thing after the other, under a disk that may refuse any of it: whoever is answered
 * with yes is kept to it, also after a restart, and nothing but a refusal of the disk's keeps anybody from it.
 */
import { expect } from 'vitest';
import { gatewayCrypto } from '../../channel/node/crypto.ts';
import { connect, pair, PosternError, type PairedDevice } from '../../clients/sdk/index.ts';
import { relayOfInvite } from '../../clients/sdk/relay.ts';
import { askForInvite } from './invites.ts';
import type { TestServer } from './server.ts';
import { until } from './wait.ts';

const crypto = gatewayCrypto('node');

/** What was answered with yes, and has to be so after a restart. */
interface Acknowledged {
  readonly keys: string[];
  readonly revoked: string[];
  readonly devices: PairedDevice[];
  readonly revokedDevices: PairedDevice[];
  readonly responses: string[];
  readonly models: string[];
}

const json = (body: unknown) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});
const CHAT = { model: 'foundation', max_tokens: 1, messages: [{ role: 'user', content: 'hello' }] };
/** What a caller is told of a write that failed; nothing else may be wrong. */
const REFUSALS = [503, 507];

export class WritingScenario {
  readonly acknowledged: Acknowledged = {
    keys: [],
    revoked: [],
    devices: [],
    revokedDevices: [],
    responses: [],
    models: [],
  };
  readonly #server: TestServer;

  constructor(server: TestServer) {
    this.#server = server;
  }

  async run(): Promise<void> {
    await this.#expectRelayed();
    await this.#makeKey();
    await this.#makeKey();
    await this.#revoke(this.acknowledged.keys[0]);
    await this.#pair({});
    await this.#pair({ needs_approval: true }, 'approve');
    await this.#pair({ needs_approval: true }, 'deny');
    await this.#revokeDevice();
    await this.#chat();
    await this.#respond();
    await this.#pull();
    expect((await this.#ask('/api/tags')).status).toBe(200);
    expect((await this.#ask('/v1/responses/resp_none')).status).toBe(404);
    await until(async () => ((await (await this.#ask('/health')).json()) as { status: string }).status === 'healthy');
  }

  /** Nothing was refused: the scenario did all that it is there for. */
  expectWhole(): void {
    const { keys, revoked, devices, revokedDevices, responses, models } = this.acknowledged;
    const counts = [keys, revoked, devices, revokedDevices, responses, models].map(({ length }) => length);
    expect(counts).toEqual([2, 1, 1, 1, 1, 1]);
  }

  /** After a restart. */
  async expectKept(): Promise<void> {
    const { keys } = (await (await this.#ask('/admin/keys')).json()) as { keys: { id: string; status: string }[] };
    const statusOf = (id: string) => keys.find((key) => key.id === id)?.status;
    const { acknowledged } = this;
    for (const id of acknowledged.keys) {
      expect([id, statusOf(id)]).toEqual([id, acknowledged.revoked.includes(id) ? 'revoked' : 'active']);
    }
    for (const device of acknowledged.devices) await this.#call(device);
    for (const device of acknowledged.revokedDevices) await this.#expectRefused(device);
    await this.#expectRelayed();
    const { models } = (await (await this.#ask('/api/tags')).json()) as { models: { name: string }[] };
    expect(models.map(({ name }) => name)).toEqual(expect.arrayContaining(acknowledged.models));
    const { pulls } = (await (await this.#ask('/admin/pulls')).json()) as { pulls: { state: string }[] };
    expect(pulls.map(({ state }) => state)).not.toContain('running');
    for (const id of acknowledged.responses) expect((await this.#ask(`/v1/responses/${id}`)).status).toBe(200);
  }

  after(server: TestServer): WritingScenario {
    const scenario = new WritingScenario(server);
    Object.assign(scenario.acknowledged, this.acknowledged);
    return scenario;
  }

  #ask(path: string, init: RequestInit = {}): Promise<Response> {
    return fetch(`${this.#server.url}${path}`, init);
  }

  /** @returns what was answered; undefined where that was not stored */
  async #change(path: string, init: RequestInit): Promise<unknown> {
    const response = await this.#ask(path, init);
    const answer: unknown = await response.json();
    if (response.ok) return answer;
    expect([path, response.status, answer]).toEqual([path, expect.toBeOneOf(REFUSALS), answer]);
    expect(JSON.stringify(answer)).toMatch(/storage_(full|unavailable)|identity_unavailable/);
    return undefined;
  }

  async #makeKey(): Promise<void> {
    const made = (await this.#change('/admin/keys', json({}))) as { id: string } | undefined;
    if (made !== undefined) this.acknowledged.keys.push(made.id);
  }

  /** From the stub of a hub that the server's environment names. */
  async #pull(): Promise<void> {
    const response = await this.#ask('/api/pull', json({ model: 'hf.co/org/tiny', stream: false }));
    const answer = (await response.json()) as { error?: string };
    if (response.ok) return void this.acknowledged.models.push('tiny');
    expect([500, ...REFUSALS]).toContain(response.status);
    expect(answer.error).toMatch(/disk|can't be written|can't reach what it has stored/);
  }

  /** Refused from now on, and written before the service is healthy again, whatever the disk says to it. */
  async #revoke(id: string | undefined): Promise<void> {
    if (id === undefined) return;
    expect(await this.#change(`/admin/keys/${id}`, { method: 'DELETE' })).toMatchObject({ id, revoked: true });
    this.acknowledged.revoked.push(id);
  }

  /** The one that was paired last: as with a key. */
  async #revokeDevice(): Promise<void> {
    const device = this.acknowledged.devices.at(-1);
    if (device === undefined) return;
    const { deviceId: id } = device;
    expect(await this.#change(`/admin/devices/${id}`, { method: 'DELETE' })).toMatchObject({ id, revoked: true });
    this.acknowledged.devices.pop();
    this.acknowledged.revokedDevices.push(device);
    await this.#expectRefused(device);
  }

  async #pair(params: object, decision?: 'approve' | 'deny'): Promise<void> {
    const invite = await askForInvite(this.#server, params).catch(() => undefined);
    if (typeof invite !== 'string') return;
    const entries = new Map<string, string>();
    const storage = {
      read: async (name: string) => entries.get(name),
      write: async (name: string, text: string) => void entries.set(name, text),
      erase: async (name: string) => void entries.delete(name),
    };
    const device = { name: 'a device', platform: 'test' };
    // A service with a relay names it and nothing else.
    const transports = relayOfInvite(invite, { crypto });
    const pairing = pair(invite, { crypto, storage, device, transports }).catch((error: unknown) => {
      expect(error).toBeInstanceOf(PosternError);
      return undefined;
    });
    if (decision !== undefined) await this.#decide(pairing, decision);
    const paired = await pairing;
    if (decision === 'deny') expect(paired).toBe(undefined);
    if (paired === undefined) return;
    this.acknowledged.devices.push(paired);
    await this.#call(paired);
  }

  async #decide(pairing: Promise<unknown>, decision: 'approve' | 'deny'): Promise<void> {
    let isOver = false;
    void pairing.then(() => (isOver = true));
    await until(async () => {
      const { approvals } = (await (await this.#ask('/admin/approvals')).json()) as { approvals: { id: string }[] };
      for (const { id } of approvals) await this.#change(`/admin/approvals/${id}`, json({ decision }));
      return isOver;
    });
  }

  /** Reads, and does what must not be done twice, which is written down before. */
  async #call(device: PairedDevice): Promise<void> {
    const client = connect({ ...device, urls: [this.#server.url] });
    try {
      const read = await client.fetch('/v1/models');
      expect(read.status).toBe(200);
      await read.text();
      const done = await client.fetch('/v1/chat/completions', json(CHAT));
      expect([done.status, await done.text()]).toEqual([expect.toBeOneOf([200, ...REFUSALS]), expect.any(String)]);
    } finally {
      client.close();
    }
  }

  async #expectRefused(device: PairedDevice): Promise<void> {
    const client = connect({ ...device, urls: [this.#server.url] });
    await expect(client.fetch('/v1/models')).rejects.toMatchObject({ code: expect.toBeOneOf(['revoked', 'refused']) });
    client.close();
  }

  /** Each registration takes a number that is higher than those before, and that is written down first. */
  async #expectRelayed(): Promise<void> {
    await until(async () => {
      const { relays } = (await (await this.#ask('/admin/status')).json()) as { relays: { state: string }[] };
      return relays.length === 1 && relays[0]!.state === 'connected';
    });
  }

  async #chat(): Promise<void> {
    const response = await this.#ask('/v1/chat/completions', json(CHAT));
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"choices"')]);
  }

  async #respond(): Promise<void> {
    const body = { model: 'foundation', max_output_tokens: 16, input: 'hello' };
    const response = await this.#ask('/v1/responses', json(body));
    expect(response.status).toBe(200);
    const { id, store } = (await response.json()) as { id: string; store: boolean };
    if (store) this.acknowledged.responses.push(id);
  }
}
