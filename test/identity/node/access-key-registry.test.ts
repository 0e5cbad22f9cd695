import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { asPublicKey } from '../../../channel/keys.ts';
import { openDatabase, type Database } from '../../../storage/database.ts';
import { confirmationOf } from '../../../identity/access-claims.ts';
import { signAccessKey } from '../../../identity/access-key.ts';
import { addressOf } from '../../../identity/address.ts';
import { deriveAgentKey } from '../../../identity/agent-key.ts';
import {
  createAccessKeyRegistry,
  DEFAULT_LIFETIME_S,
  type AccessKeyEvent,
  type AccessKeyRegistry,
} from '../../../identity/node/access-key-registry.ts';
import { createLruCache } from '../../../identity/node/lru-cache.ts';
import { asMasterKey, type MasterKey } from '../../../identity/secret-keys.ts';
import { temporaryHome } from './home.ts';

const START_MS = 1_700_000_000_500;
const START_S = 1_700_000_000;

let home: string;
let remove: () => void;
let databases: Database[];
let timeMs: number;
let events: AccessKeyEvent[];
let keys: AccessKeyRegistry;
let database: Database;

beforeEach(() => {
  ({ home, remove } = temporaryHome());
  databases = [];
  timeMs = START_MS;
  events = [];
  keys = registry();
  database = databases[0]!;
});
afterEach(() => {
  for (const one of databases) one.close();
  remove();
});

const issuers = (master: MasterKey) => ({
  masterKey: () => master,
  agentKey: (index: number) => deriveAgentKey(master, index),
});
const master = asMasterKey(new Uint8Array(32).fill(7));

/** One more process on the same folder, as it were. */
function registry({
  signer = master,
  record = (event: AccessKeyEvent): void => void events.push(event),
}: { signer?: MasterKey; record?: (event: AccessKeyEvent) => void } = {}): AccessKeyRegistry {
  const opened = openDatabase(home);
  databases.push(opened);
  const now = () => timeMs;
  return createAccessKeyRegistry({ database: opened, identity: issuers(signer), now, randomBytes, record });
}

const refusalOf = (token: string, among = keys) => {
  const verdict = among.verify(token);
  return verdict.counts ? 'counts' : verdict.refusal;
};
const forge = (token: string): string => {
  const [prefix, payload, signature] = token.split('.') as [string, string, string];
  return [prefix, payload, (signature.startsWith('1') ? '2' : '1') + signature.slice(1)].join('.');
};

describe('a key that was made', () => {
  test('counts, for everything or for one agent', () => {
    const all = keys.create({ label: 'laptop' });
    expect(all.key).toMatchObject({ scope: 'master', label: 'laptop', issuedAtS: START_S });
    expect(all.key.expiresAtS).toBe(START_S + DEFAULT_LIFETIME_S);
    expect(keys.verify(all.token)).toMatchObject({ counts: true, key: { kid: all.key.kid, scope: 'master' } });
    const one = keys.create({ agentIndex: 3 });
    const address = addressOf(deriveAgentKey(master, 3));
    expect(keys.verify(one.token)).toMatchObject({ counts: true, key: { scope: address, issuer: address } });
  });

  test('is nowhere in the database, but what it is for', () => {
    const { token, key } = keys.create({ label: 'laptop' });
    keys.verify(token);
    const [, payload, signature] = token.split('.') as [string, string, string];
    database.pragma('wal_checkpoint(TRUNCATE)');
    const bytes = database.serialize();
    expect(bytes.includes(key.kid)).toBe(true);
    for (const part of [payload.slice(0, 40), signature.slice(0, 40)]) expect(bytes.includes(part)).toBe(false);
    expect(bytes.includes(Buffer.from(signature, 'hex').subarray(0, 16))).toBe(false);
  });

  test('counts after a restart, too', () => {
    const { token } = keys.create({});
    expect(refusalOf(token, registry())).toBe('counts');
  });

  test('is told to the audit log, in the same transaction', () => {
    const { key } = keys.create({ label: 'laptop', lifetimeS: null });
    expect(events).toEqual([
      { kind: 'key_created', kid: key.kid, scope: 'master', label: 'laptop', expiresAtS: null, isDeviceGrant: false },
    ]);
    const deaf = registry({
      record: () => {
        throw new Error('the log is full');
      },
    });
    expect(() => deaf.create({})).toThrow('the log is full');
    expect(keys.list().map(({ kid }) => kid)).toEqual([key.kid]);
  });

  test('may be part of a larger transaction, and goes with it', () => {
    const whole = database.transaction(() => {
      keys.create({});
      throw new Error('something else failed');
    });
    expect(() => whole.immediate()).toThrow('something else');
    expect(keys.list()).toEqual([]);
  });

  test.each([{ label: '' }, { label: 'a\nb' }, { lifetimeS: 0 }, { lifetimeS: 0.5 }, { agentIndex: -1 }])(
    'cannot be wished for with %j',
    (params) => {
      expect(() => keys.create(params)).toThrow(RangeError);
      expect(keys.list()).toEqual([]);
      expect(events).toEqual([]);
    },
  );

  test('is listed, newest first, with when it was last used, to the minute', () => {
    const old = keys.create({ label: 'old' });
    timeMs += 1000;
    keys.create({ label: 'new' });
    expect(keys.list().map(({ label }) => label)).toEqual(['new', 'old']);
    expect(keys.find(old.key.kid)?.lastUsedAtS).toBeUndefined();
    for (const laterMs of [0, 59_000, 60_000]) {
      timeMs = START_MS + laterMs;
      expect(keys.verify(old.token).counts).toBe(true);
    }
    expect(keys.find(old.key.kid)?.lastUsedAtS).toBe(START_S + 60);
  });
});

describe('what does not count', () => {
  test('text that is no key, however long', () => {
    for (const text of ['', 'any', 'svc-v1..', 'x'.repeat(10_000_000)]) {
      expect(keys.verify(text)).toEqual({ counts: false, refusal: 'malformed', kid: undefined });
    }
  });

  test('a key with another signature', () => {
    const { token, key } = keys.create({});
    expect(keys.verify(forge(token))).toEqual({ counts: false, refusal: 'forged', kid: key.kid });
    expect(refusalOf(token)).toBe('counts');
    expect(refusalOf(forge(token))).toBe('forged');
  });

  test('a key of ours that says more than we signed: another scope, another end', () => {
    const { key, token } = keys.create({ agentIndex: 1 });
    const agent = deriveAgentKey(master, 1);
    const claims = { kid: key.kid, issuer: addressOf(agent), scope: addressOf(agent), issuedAtS: START_S } as const;
    const endless = signAccessKey(claims, deriveAgentKey(master, 1));
    const [prefix, , signature] = token.split('.');
    expect(refusalOf([prefix, endless.split('.')[1], signature].join('.'))).toBe('forged');
    const stranger = asMasterKey(randomBytes(32));
    const broad = { ...claims, issuer: addressOf(stranger), scope: 'master' } as const;
    expect(refusalOf(signAccessKey(broad, stranger))).toBe('forged');
  });

  test('a key that another gateway made, or this one before its identity was replaced', () => {
    const { token } = keys.create({});
    const stranger = asMasterKey(new Uint8Array(32).fill(8));
    expect(refusalOf(token, registry({ signer: stranger }))).toBe('not_ours');
    const elsewhere = temporaryHome();
    const other = openDatabase(elsewhere.home);
    const options = { database: other, identity: issuers(master), now: () => timeMs, randomBytes };
    const theirs = createAccessKeyRegistry({ ...options, record: () => undefined });
    expect(refusalOf(theirs.create({}).token)).toBe('not_ours');
    other.close();
    elsewhere.remove();
  });

  test('an expired one, from its very second on', () => {
    const { token } = keys.create({ lifetimeS: 60 });
    timeMs = (START_S + 60) * 1000 - 1;
    expect(refusalOf(token)).toBe('counts');
    timeMs += 1;
    expect(refusalOf(token)).toBe('expired');
    expect(refusalOf(token, registry())).toBe('expired');
  });

  test('a revoked one, and that goes before expired', async () => {
    const { token, key } = keys.create({ lifetimeS: 60 });
    await keys.revoke(key.kid);
    expect(refusalOf(token)).toBe('revoked');
    timeMs += 1_000_000;
    expect(refusalOf(token)).toBe('revoked');
  });

  test('a device’s grant, anywhere but in that device’s calls', () => {
    const device = asPublicKey(new Uint8Array(32).fill(1));
    const { token, key } = keys.create({ device });
    expect(key.confirmation).toBe(confirmationOf(device));
    expect(refusalOf(token)).toBe('device_bound');
    expect(keys.verify(token, device).counts).toBe(true);
    expect(keys.verify(token, asPublicKey(new Uint8Array(32).fill(2)))).toMatchObject({ refusal: 'device_bound' });
    expect(refusalOf(token)).toBe('device_bound');
    // A key that is bound to no device is as good inside a call as outside.
    expect(keys.verify(keys.create({}).token, device).counts).toBe(true);
  });
});

describe('revoking', () => {
  test('bites at once, for good, and for this key alone', async () => {
    const [one, other] = [keys.create({ label: 'same' }), keys.create({ label: 'same' })];
    expect(refusalOf(one.token)).toBe('counts');
    expect(await keys.revoke(one.key.kid)).toEqual({ result: 'revoked', cut: 0, isDurable: true });
    expect([refusalOf(one.token), refusalOf(other.token)]).toEqual(['revoked', 'counts']);
    const again = keys.create({ label: 'same' });
    expect([refusalOf(one.token), refusalOf(again.token)]).toEqual(['revoked', 'counts']);
    expect(refusalOf(one.token, registry())).toBe('revoked');
    expect(keys.find(one.key.kid)).toMatchObject({ revokedAtS: START_S, label: 'same' });
  });

  test('from another process bites here, too, though the key was seen before', async () => {
    const { token, key } = keys.create({});
    expect(refusalOf(token)).toBe('counts');
    await registry().revoke(key.kid);
    expect(refusalOf(token)).toBe('revoked');
  });

  test('twice changes nothing, and of an unknown key is said', async () => {
    const { key } = keys.create({});
    await keys.revoke(key.kid);
    timeMs += 5000;
    expect(await keys.revoke(key.kid)).toEqual({ result: 'already', cut: 0, isDurable: true });
    expect(keys.find(key.kid)?.revokedAtS).toBe(START_S);
    expect(await keys.revoke('0123456789abcdef')).toEqual({ result: 'unknown', cut: 0, isDurable: true });
    expect(events.filter(({ kind }) => kind === 'key_revoked')).toEqual([{ kind: 'key_revoked', kid: key.kid }]);
  });

  test('all is each of them', async () => {
    const made = [keys.create({}), keys.create({ agentIndex: 1 }), keys.create({ lifetimeS: 1 })];
    await keys.revoke(made[0]!.key.kid);
    timeMs += 10_000;
    const told: string[] = [];
    keys.onRevocation((kids) => void told.push(...kids));
    const { revoked: struck } = await keys.revokeAll();
    expect(struck.toSorted()).toEqual([made[1]!.key.kid, made[2]!.key.kid].toSorted());
    expect(told).toEqual(struck);
    expect(made.map(({ token }) => refusalOf(token))).toEqual(['revoked', 'revoked', 'revoked']);
    expect(await keys.revokeAll()).toEqual({ revoked: [], cut: 0, isDurable: true });
  });

  test('returns when what goes on under the key has ended, and not before', async () => {
    const { token, key } = keys.create({});
    let end: (() => void) | undefined;
    const seen: string[] = [];
    keys.onRevocation(async (kids) => {
      // By the time that anybody is told, the key is refused, though the log does not have it yet.
      seen.push(...kids, refusalOf(token), events.at(-1)!.kind);
      await new Promise<void>((resolve) => (end = resolve));
      return 2;
    });
    let isDone = false;
    const revoked = keys.revoke(key.kid).then((outcome) => {
      isDone = true;
      return outcome;
    });
    await new Promise(setImmediate);
    expect([...seen, events.at(-1)!.kind]).toEqual([key.kid, 'revoked', 'key_created', 'key_revoked']);
    expect(isDone).toBe(false);
    end?.();
    expect(await revoked).toEqual({ result: 'revoked', cut: 2, isDurable: true });
  });

  test('tells every listener, even after one failed, and says so; who left is not told', async () => {
    const { token, key } = keys.create({});
    const told: string[] = [];
    keys.onRevocation(() => Promise.reject(new Error('stuck')));
    keys.onRevocation(() => {
      throw new Error('broken');
    });
    keys.onRevocation(() => void told.push('last'));
    keys.onRevocation(() => void told.push('gone'))();
    await expect(keys.revoke(key.kid)).rejects.toThrow(AggregateError);
    expect(told).toEqual(['last']);
    expect(refusalOf(token)).toBe('revoked');
    // Asked again, they get another try.
    await expect(keys.revoke(key.kid)).rejects.toThrow(AggregateError);
    expect(told).toEqual(['last', 'last']);
  });

  test('is not kept where the audit log cannot have it, but refuses the key and ends what goes on, until the process ends', async () => {
    const { token, key } = keys.create({});
    const deaf = registry({
      record: () => {
        throw new Error('the log is full');
      },
    });
    const told: string[] = [];
    deaf.onRevocation((kids) => void told.push(...kids));
    await expect(deaf.revoke(key.kid)).rejects.toThrow('the log is full');
    expect(deaf.verify(token)).toMatchObject({ counts: false, refusal: 'revoked' });
    expect(told).toEqual([key.kid]);
    // Another process reads the database, which has no word of it.
    expect(refusalOf(token)).toBe('counts');
  });
});

test('what is remembered is bounded, and what was used longest ago is forgotten first', () => {
  const recent = createLruCache<number>(3);
  for (const [name, value] of Object.entries({ a: 1, b: 2, c: 3 })) recent.set(name, value);
  expect(recent.get('a')).toBe(1);
  recent.set('d', 4);
  recent.set('d', 5);
  expect(['a', 'b', 'c', 'd'].map((name) => recent.get(name))).toEqual([1, undefined, 3, 5]);
});

describe('where the disk takes nothing', () => {
  /** A registry whose writes fail from the moment on at which the test says so. */
  function onDisk({ postpone }: Partial<Pick<Parameters<typeof createAccessKeyRegistry>[0], 'postpone'>> = {}) {
    const opened = openDatabase(home);
    databases.push(opened);
    const ended: string[] = [];
    const waiting: (() => void)[] = [];
    const made = createAccessKeyRegistry({
      database: opened,
      identity: issuers(master),
      now: () => timeMs,
      randomBytes,
      record: (event) => void events.push(event),
      postpone: postpone ?? ((_error, write) => waiting.push(write) > 0),
    });
    made.onRevocation((kids) => {
      ended.push(...kids);
    });
    return { made, ended, waiting, refuse: (is: boolean) => opened.pragma(`query_only = ${is ? 'ON' : 'OFF'}`) };
  }

  test('a revoked key is refused at once, and what goes on under it ends', async () => {
    const { made, ended, refuse } = onDisk();
    const { token, key } = made.create({});
    refuse(true);
    expect(await made.revoke(key.kid)).toEqual({ result: 'revoked', cut: 0, isDurable: false });
    expect([refusalOf(token, made), ended]).toEqual(['revoked', [key.kid]]);
    expect([made.find(key.kid)?.revokedAtS, made.list()[0]?.revokedAtS]).toEqual([START_S, START_S]);
    expect(await made.revoke(key.kid)).toEqual({ result: 'already', cut: 0, isDurable: false });
  });

  test('the revocation is written when it takes something again, and is durable then', async () => {
    const { made, waiting, refuse } = onDisk();
    const { token, key } = made.create({});
    refuse(true);
    expect(await made.revokeAll()).toEqual({ revoked: [key.kid], cut: 0, isDurable: false });
    expect(refusalOf(token)).toBe('counts');
    refuse(false);
    for (const write of waiting) write();
    expect([refusalOf(token, made), refusalOf(token)]).toEqual(['revoked', 'revoked']);
    expect(await made.revoke(key.kid)).toEqual({ result: 'already', cut: 0, isDurable: true });
    expect(events.filter(({ kind }) => kind === 'key_revoked')).toHaveLength(1);
  });

  test('where nobody would try again it fails, and is refused all the same', async () => {
    const { made, refuse } = onDisk({ postpone: () => false });
    const { token, key } = made.create({});
    refuse(true);
    await expect(made.revoke(key.kid)).rejects.toThrow('readonly');
    expect([refusalOf(token, made), refusalOf(token)]).toEqual(['revoked', 'counts']);
  });
});
