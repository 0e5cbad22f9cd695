import { describe, expect, test } from 'vitest';
import { encodeEnvelope } from '../../../channel/envelope.ts';
import { HINT } from '../../../channel/hint.ts';
import type { PairedDevice, PairOptions, PosternErrorCode, SecretStorage } from '../../../clients/sdk/index.ts';
import {
  connect,
  describeInvite,
  deviceEntry,
  findPairedDevice,
  forgetDevice,
  loadDevice,
  pair,
} from '../../../clients/sdk/index.ts';
import { outwardError, RequestError, type ErrorCode, type RequestErrorCode } from '../../../gateway/errors.ts';
import { formatInviteCode, formatInviteLink } from '../../../identity/invite-code.ts';
import { codeOf, start as startWith } from '../../support/sealed-client.ts';
import { createFakeTime } from '../../core/fake-time.ts';
import type { SealedGateway, SealedGatewayOptions } from '../../support/sealed-gateway.ts';
import { until } from '../../support/wait.ts';

const start = (options?: SealedGatewayOptions): Promise<SealedGateway> => startWith(() => ({ body: 'hello' }), options);

function newStorage(): SecretStorage & { readonly entries: Map<string, string> } {
  const entries = new Map<string, string>();
  return {
    entries,
    read: async (name) => entries.get(name),
    write: async (name, text) => void entries.set(name, text),
    erase: async (name) => void entries.delete(name),
  };
}

function optionsFor(storage: SecretStorage, more: Partial<PairOptions> = {}): PairOptions {
  return { device: { name: 'laptop', platform: 'linux' }, storage, ...more };
}

const cut = (afterBytes: number) => ({ do: 'cut', afterBytes }) as const;

test('an invite that was pasted makes a device that can call', async () => {
  const gateway = await start();
  const storage = newStorage();
  const device = await pair(`  ${formatInviteCode(gateway.newInvite()).toLowerCase()}\n`, optionsFor(storage));
  expect(device).toMatchObject({ version: 1, deviceId: 'device-1', gatewayId: gateway.gatewayId, urls: [gateway.url] });
  expect([...storage.entries.keys()]).toEqual([deviceEntry(device.gatewayId)]);
  const stored = await loadDevice(storage, device.gatewayId);
  expect(stored).toEqual(device);
  expect(await (await connect(stored!).fetch('/x')).text()).toBe('hello');
  await forgetDevice(storage, device);
  expect(storage.entries.size).toBe(0);
});

test('an invite is described before anything is sent', async () => {
  const gateway = await start();
  const code = gateway.newInvite({ needsApproval: true, urls: [gateway.url, 'ftp://x'] });
  const described = describeInvite(formatInviteLink('https://app.example', code));
  expect(described).toMatchObject({
    gatewayId: gateway.gatewayId,
    urls: [gateway.url],
    isOver: false,
    needsApproval: true,
  });
  expect(describeInvite(code, { now: () => described.expiresAtMs }).isOver).toBe(true);
  expect(gateway.seen).toEqual([]);
  expect(() => describeInvite('SVC:AAAA')).toThrow(expect.objectContaining({ code: 'invite_unreadable' }));
});

test.each([
  ['of the handshake', cut(0), undefined],
  ['of the confirmation', undefined, cut(0)],
  ['of the confirmation, in part', undefined, cut(400)],
] as const)('a lost answer %s is asked for again with the same key', async (_which, first, second) => {
  const gateway = await start();
  const storage = newStorage();
  const invite = gateway.newInvite();
  gateway.meddle('pair-invite', first, second);
  const device = await pair(invite, optionsFor(storage)).catch(() => pair(invite, optionsFor(storage)));
  expect(new Set(gateway.redeemers).size).toBe(1);
  expect(await (await connect(device).fetch('/x')).text()).toBe('hello');
});

test('a crash after the gateway has redeemed the invite strands nobody', async () => {
  const gateway = await start();
  const storage = newStorage();
  const invite = gateway.newInvite();
  // The first attempt is aborted when the gateway has done its part and the answer is on its way.
  const crash = new AbortController();
  gateway.meddle('pair-invite', undefined, { do: 'mute', afterBytes: 0 });
  const crashed = codeOf(pair(invite, optionsFor(storage, { signal: crash.signal })));
  await until(() => gateway.redeemers.length === 1);
  crash.abort('crashed');
  expect(await crashed).toBe('crashed');
  expect([...storage.entries.keys()]).toEqual([expect.stringMatching(/^pairing-[0-9a-f]{32}$/u)]);
  const device = await pair(invite, optionsFor(storage));
  expect(new Set(gateway.redeemers).size).toBe(1);
  expect((await connect(device).fetch('/x')).status).toBe(200);
});

test('the key is stored before anything is sent', async () => {
  const gateway = await start();
  const storage = { ...newStorage(), write: () => Promise.reject(new Error('disk full')) };
  await expect(pair(gateway.newInvite(), optionsFor(storage))).rejects.toThrow('disk full');
  expect(gateway.seen).toEqual([]);
});

test.each([
  ['invite_over', 410],
  ['pairing_denied', 403],
  ['approval_expired', 408],
] as const)('%s leaves nothing half-paired', async (code, status) => {
  const gateway = await start({ decide: async () => ({ status, code }) });
  const storage = newStorage();
  expect(await codeOf(pair(gateway.newInvite(), optionsFor(storage)))).toBe(code);
  expect(storage.entries.size).toBe(0);
});

test('an invite that another device has used says so', async () => {
  const gateway = await start();
  const invite = gateway.newInvite();
  await pair(invite, optionsFor(newStorage()));
  const storage = newStorage();
  expect(await codeOf(pair(invite, optionsFor(storage)))).toBe('invite_used');
  expect(storage.entries.size).toBe(0);
});

test('when too many wait for the owner, the key is kept for another try', async () => {
  const gateway = await start({ decide: async () => ({ status: 429, code: 'too_many_approvals' }) });
  const storage = newStorage();
  expect(await codeOf(pair(gateway.newInvite(), optionsFor(storage)))).toBe('too_many_approvals');
  expect(storage.entries.size).toBe(1);
});

/** Whatever the gateway answers a pairing with, sealed. What is left is what this library would have sent wrongly. */
const MEANINGS: Readonly<Record<ErrorCode, PosternErrorCode>> = {
  ...{ invite_used: 'invite_used', invite_over: 'invite_over', pairing_denied: 'pairing_denied' },
  ...{ approval_expired: 'approval_expired', too_many_approvals: 'too_many_approvals' },
  ...{ rate_limited: 'busy', storage_full: 'storage_full' },
  ...{ storage_unavailable: 'gateway_unavailable', identity_unavailable: 'gateway_unavailable' },
  ...{ channel_unavailable: 'gateway_unavailable', insufficient_resources: 'gateway_unavailable' },
  ...{ overloaded: 'gateway_unavailable', shutting_down: 'gateway_unavailable', internal: 'gateway_unavailable' },
  ...{ engine_failed: 'gateway_unavailable', not_implemented: 'gateway_unavailable' },
  ...{ bad_request: 'incompatible', invalid_request: 'incompatible', prompt_too_long: 'incompatible' },
  ...{ unsupported: 'incompatible', unauthenticated: 'incompatible', agent_not_found: 'incompatible' },
  ...{ agent_scope_denied: 'incompatible', cross_site: 'incompatible', forbidden: 'incompatible' },
  ...{ foreign_host: 'incompatible', model_not_found: 'incompatible', not_found: 'incompatible' },
  ...{ previous_response_not_found: 'incompatible' },
  ...{ method_not_allowed: 'incompatible', request_timeout: 'incompatible', already_dispatched: 'incompatible' },
  ...{ approval_needs_code: 'incompatible', approval_settled: 'incompatible', records_gone: 'incompatible' },
  ...{ too_many_invites: 'incompatible', body_too_large: 'incompatible', unsupported_media_type: 'incompatible' },
  ...{ misdirected: 'incompatible', idempotency_key_reused: 'incompatible', headers_too_large: 'incompatible' },
  ...{ secure_channel_required: 'incompatible' },
};

/** As an error of the service, or of the gateway: one table has the statuses of both. */
const statusOf = (code: ErrorCode): number => outwardError(new RequestError(code as RequestErrorCode, '')).status;

test('a gateway in trouble is not called one of another version, whatever its trouble', async () => {
  let code: ErrorCode = 'internal';
  const gateway = await start({ decide: async () => ({ status: statusOf(code), code }) });
  for (const [said, meaning] of Object.entries(MEANINGS)) {
    code = said as ErrorCode;
    const time = createFakeTime(Date.now());
    const options = optionsFor(newStorage(), { now: time.now, setTimer: time.setTimer });
    let ended: unknown;
    void codeOf(pair(gateway.newInvite(), options)).then((how) => (ended = how));
    await until(() => (time.advance(100), ended));
    expect([said, ended]).toEqual([said, meaning]);
  }
});

test('what only a hint says keeps the key, since it may be a lie', async () => {
  const gateway = await start();
  const storage = newStorage();
  const invite = gateway.newInvite();
  gateway.meddle('pair-invite', { do: 'forge', hint: 1 });
  expect(await codeOf(pair(invite, optionsFor(storage)))).toBe('refused');
  expect(storage.entries.size).toBe(1);
  await pair(invite, optionsFor(storage));
  expect(storage.entries.size).toBe(1);
});

test('an invite that is over is not sent anywhere, and its key is erased', async () => {
  const gateway = await start();
  const storage = newStorage();
  const invite = gateway.newInvite();
  gateway.meddle('pair-invite', { do: 'drop' }, { do: 'drop' });
  expect(await codeOf(pair(invite, optionsFor(storage)))).toBe('offline');
  const now = (): number => invite.expiresAtMinute * 60_000;
  expect(await codeOf(pair(invite, optionsFor(storage, { now })))).toBe('invite_over');
  expect([storage.entries.size, gateway.seen]).toEqual([0, []]);
});

test('the owner may take longer than the connection lasts', async () => {
  let approve = (): void => undefined;
  const approved = new Promise<undefined>((resolve) => {
    approve = () => resolve(undefined);
  });
  const gateway = await start({ decide: () => approved });
  const time = createFakeTime(Date.now());
  const storage = newStorage();
  const options = optionsFor(storage, { now: time.now, setTimer: time.setTimer });
  const paired = pair(gateway.newInvite({ needsApproval: true }), options);
  await until(() => gateway.redeemers.length === 1);
  time.advance(60_000);
  await until(() => (time.advance(10), gateway.redeemers.length === 2));
  approve();
  expect((await paired).deviceId).toBe('device-1');
  expect(new Set(gateway.redeemers).size).toBe(1);
});

test('an impostor at the address of the invite gets nowhere', async () => {
  const [gateway, impostor] = [await start(), await start()];
  impostor.newInvite();
  const invite = gateway.newInvite({ urls: [impostor.url, gateway.url] });
  const device = await pair(invite, optionsFor(newStorage()));
  expect(device.gatewayId).toBe(gateway.gatewayId);
  expect(impostor.redeemers).toEqual([]);
  const stolen = { ...invite, urls: [impostor.url] };
  expect(await codeOf(pair(stolen, optionsFor(newStorage())))).toBe('refused');
});

test('a description that no gateway takes is our own mistake', async () => {
  const device = { name: 'two\nlines', platform: 'linux' };
  await expect(pair('SVC:', { device, storage: newStorage() })).rejects.toThrow(RangeError);
});

test('what is stored is read back, and anything else is no device', async () => {
  const gateway = await start();
  const device = { ...gateway.newDevice(), bearerKey: 'svc-access:x', relays: [{ origin: 'wss://r', rid: 'AAAA' }] };
  expect(findPairedDevice(JSON.stringify(device))).toEqual(device);
  for (const change of [{ version: 2 }, { psk: 'AAAA' }, { urls: 'x' }, { relays: [1] }, { deviceId: 1 }])
    expect(findPairedDevice(JSON.stringify({ ...device, ...change }))).toBeUndefined();
  expect(findPairedDevice('{')).toBeUndefined();
});

describe('a gateway that is asked too often', () => {
  const later = { do: 'refuse', hint: 6 } as const;

  test.each([
    ['the handshake', [later, later, undefined, undefined]],
    ['the confirmation', [undefined, later, undefined, undefined]],
  ])('at %s is asked again after a while, with the same key', async (_, meddlings) => {
    const gateway = await start();
    const time = createFakeTime(Date.now());
    gateway.meddle('pair-invite', ...meddlings);
    const options = optionsFor(newStorage(), { now: time.now, setTimer: time.setTimer });
    let device: PairedDevice | undefined;
    const paired = pair(gateway.newInvite(), options).then((made) => (device = made));
    await until(() => (time.advance(25), device !== undefined));
    expect((await paired).deviceId).toBe('device-1');
  });

  test('is not asked for ever, and the key is kept', async () => {
    const gateway = await start();
    const time = createFakeTime(Date.now());
    const fetch = async () => new Response(Uint8Array.from(encodeEnvelope({ kind: 'hint', code: HINT.rateLimited })));
    const storage = newStorage();
    let code: unknown;
    const options = optionsFor(storage, { now: time.now, setTimer: time.setTimer, fetch });
    void codeOf(pair(gateway.newInvite(), options)).then((ended) => (code = ended));
    await until(() => (time.advance(500), code));
    expect([code, storage.entries.size]).toEqual(['busy', 1]);
  });
});
