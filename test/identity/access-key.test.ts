import { createHmac, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { formatBase64url } from '../../channel/base64url.ts';
import { utf8ToBytes } from '../../channel/bytes.ts';
import { asPublicKey } from '../../channel/keys.ts';
import {
  confirmationOf,
  decodeClaims,
  encodeClaims,
  isLabel,
  type AccessClaims,
} from '../../identity/access-claims.ts';
import {
  findAccessKey,
  isSignedByIssuer,
  MAX_ACCESS_KEY_CHARACTERS,
  signAccessKey,
} from '../../identity/access-key.ts';
import { addressOf } from '../../identity/address.ts';
import { deriveAgentKey } from '../../identity/agent-key.ts';
import { asMasterKey } from '../../identity/secret-keys.ts';
import { isThorough, runs, seed } from '../support/sampling.ts';

const master = asMasterKey(new Uint8Array(32).fill(7));
const agent = deriveAgentKey(master, 3);
const [masterAddress, agentAddress] = [addressOf(master), addressOf(agent)];

const claims: AccessClaims = {
  kid: '0123456789abcdef',
  issuer: masterAddress,
  scope: 'master',
  issuedAtS: 1_700_000_000,
  expiresAtS: 1_707_776_000,
  label: 'laptop',
  confirmation: confirmationOf(asPublicKey(new Uint8Array(32).fill(9))),
};
const token = signAccessKey(claims, master);
const holds = (text: string): boolean => {
  const key = findAccessKey(text);
  return key !== undefined && isSignedByIssuer(key);
};

const label = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 20 }).filter(isLabel);
const anyClaims: fc.Arbitrary<{ claims: AccessClaims; isMaster: boolean }> = fc
  .record({
    isMaster: fc.boolean(),
    kid: fc.stringMatching(/^[0-9a-f]{16}$/),
    issuedAtS: fc.nat(),
    lifetimeS: fc.option(fc.integer({ min: 1, max: 2 ** 31 }), { nil: undefined }),
    label: fc.option(label, { nil: undefined }),
    device: fc.option(fc.uint8Array({ minLength: 32, maxLength: 32 }), { nil: undefined }),
  })
  .map(({ isMaster, lifetimeS, device, label: lbl, ...rest }) => ({
    isMaster,
    claims: {
      ...rest,
      issuer: isMaster ? masterAddress : agentAddress,
      scope: isMaster ? ('master' as const) : agentAddress,
      ...(lifetimeS === undefined ? {} : { expiresAtS: rest.issuedAtS + lifetimeS }),
      ...(lbl === undefined ? {} : { label: lbl }),
      ...(device === undefined ? {} : { confirmation: confirmationOf(asPublicKey(device)) }),
    },
  }));

describe('a key', () => {
  test('is read back as it was made', () => {
    expect(findAccessKey(token)?.claims).toEqual(claims);
    expect(holds(token)).toBe(true);
    expect(token).toMatch(/^svc-v1\.[\w-]+\.[0-9a-f]{130}$/);
  });

  test('has the layout that is written down, to the byte', () => {
    const payload = Buffer.from(token.split('.')[1]!, 'base64url').toString();
    expect(payload).toBe(
      `{"cnf":"${claims.confirmation}","exp":1707776000,"iat":1700000000,"iss":"${masterAddress}",` +
        `"kid":"0123456789abcdef","lbl":"laptop","scope":"master","v":1}`,
    );
    expect(token).toMatchInlineSnapshot(
      `"svc-v1.eyJjbmYiOiJqQXpCZWdTVUxNVDQ0UDRMTUNZRzB3IiwiZXhwIjoxNzA3Nzc2MDAwLCJpYXQiOjE3MDAwMDAwMDAsImlzcyI6IjB4NGE2MjMxNjYyM2FkNDU3RjAyY0RDNUQ5OTdkZUQ2N2EzODNFQzU2OSIsImtpZCI6IjAxMjM0NTY3ODlhYmNkZWYiLCJsYmwiOiJsYXB0b3AiLCJzY29wZSI6Im1hc3RlciIsInYiOjF9.0ffe2fab2f5060ff3a285321bdda1ce2cd57a7b81a93ba604ed1f2391308b5f13aa5b033c47e31b794b9b2282950e8230d7c4c1091424bdb102a3d06306f1e261c"`,
    );
  });

  test('of any sound claims: decode and encode are each other’s inverse, and the signature holds', () => {
    fc.assert(
      fc.property(anyClaims, ({ claims: some, isMaster }) => {
        const text = signAccessKey(some, isMaster ? master : agent);
        expect(text.length).toBeLessThan(MAX_ACCESS_KEY_CHARACTERS);
        expect(findAccessKey(text)?.claims).toEqual(some);
        expect(holds(text)).toBe(true);
        expect(decodeClaims(encodeClaims(some))).toEqual(some);
      }),
      runs(1000),
    );
  });

  test('the longest there is fits the bound, twice the length of its label does not', () => {
    const longest = signAccessKey(
      {
        ...claims,
        issuer: agentAddress,
        scope: agentAddress,
        issuedAtS: 253_402_300_798,
        expiresAtS: 253_402_300_799,
        label: '\u{1f511}'.repeat(64),
      },
      agent,
    );
    expect(longest.length).toBe(765);
    expect(holds(longest)).toBe(true);
    expect(holds(`${longest}${'0'.repeat(MAX_ACCESS_KEY_CHARACTERS)}`)).toBe(false);
  });

  test('is only signed by the issuer that it names', () => {
    expect(() => signAccessKey(claims, agent)).toThrow(RangeError);
    expect(() => signAccessKey({ ...claims, issuer: agentAddress }, agent)).not.toThrow();
    const [prefix, , signature] = token.split('.');
    const others = formatBase64url(encodeClaims({ ...claims, issuer: agentAddress, scope: agentAddress }));
    const key = findAccessKey([prefix, others, signature].join('.'));
    expect(key).toBeDefined();
    expect(isSignedByIssuer(key!)).toBe(false);
  });
});

describe('one text for each key', () => {
  const [prefix, payload, signature] = token.split('.') as [string, string, string];

  test('every flipped bit is refused', () => {
    const bytes = utf8ToBytes(token);
    // A flip inside the text that is still readable costs a millisecond; the others next to nothing.
    const step = isThorough ? 1 : 7;
    for (let bit = seed % step; bit < bytes.length * 8; bit += step) {
      const flipped = bytes.with(bit >> 3, bytes[bit >> 3]! ^ (1 << (bit & 7)));
      expect(holds(Buffer.from(flipped).toString('latin1')), `bit ${bit}`).toBe(false);
    }
  });

  test('every truncation and every addition is refused', () => {
    for (let length = 0; length < token.length; length++) {
      expect(holds(token.slice(0, length))).toBe(false);
      expect(holds(token.slice(length + 1))).toBe(false);
    }
    for (const more of [' ', '=', '0', '00', '.', '.00', '\n', '\0']) {
      expect(holds(token + more)).toBe(false);
      expect(holds(more + token)).toBe(false);
      expect(holds(`${prefix}.${payload}${more}.${signature}`)).toBe(false);
    }
  });

  test('another writing of the same bytes is refused', () => {
    expect(findAccessKey(`${prefix}.${payload}.${signature.toUpperCase()}`)).toBeUndefined();
    expect(findAccessKey(`SVC-V1.${payload}.${signature}`)).toBeUndefined();
    // The payload of these claims leaves bits over in its last character; set, they decode to the same bytes.
    const spare = signAccessKey({ ...claims, label: 'lapto' }, master).split('.') as [string, string, string];
    const padded = Buffer.from(spare[1], 'base64url').toString('base64');
    expect(padded).toMatch(/=$/);
    expect(findAccessKey(`${spare[0]}.${padded}.${spare[2]}`)).toBeUndefined();
    const last = spare[1].at(-1)!;
    const others = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.replace(last, '');
    const sameBytes = Array.from(others).filter(
      (character) =>
        Buffer.from(spare[1].slice(0, -1) + character, 'base64url').toString() ===
        Buffer.from(spare[1], 'base64url').toString(),
    );
    expect(sameBytes.length).toBeGreaterThan(0);
    for (const character of sameBytes) {
      expect(findAccessKey(`${spare[0]}.${spare[1].slice(0, -1)}${character}.${spare[2]}`)).toBeUndefined();
    }
  });

  test('the mirrored signature, which is as good to the curve, is refused', () => {
    const n = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
    const s = n - BigInt(`0x${signature.slice(64, 128)}`);
    const v = signature.endsWith('1b') ? '1c' : '1b';
    const mirrored = `${signature.slice(0, 64)}${s.toString(16).padStart(64, '0')}${v}`;
    expect(findAccessKey(`${prefix}.${payload}.${mirrored}`)).toBeUndefined();
    for (const other of ['00', '01', '1a', '1d', '25', 'ff']) {
      expect(findAccessKey(`${prefix}.${payload}.${signature.slice(0, 128)}${other}`)).toBeUndefined();
    }
    for (const rs of ['0'.repeat(128), `${signature.slice(0, 64)}${'0'.repeat(64)}`, n.toString(16).repeat(2)]) {
      expect(findAccessKey(`${prefix}.${payload}.${rs}1b`)).toBeUndefined();
    }
  });

  const json = Buffer.from(payload, 'base64url').toString();
  test.each([
    ['another order', json.replace(/^\{("cnf":"[^"]+"),(.*)\}$/, '{$2,$1}')],
    ['a space', json.replace(',', ', ')],
    ['an unknown member', json.replace('"v":1', '"v":1,"x":0')],
    ['a member twice', json.replace('"v":1', '"v":1,"v":1')],
    ['an escape that is not needed', json.replace('laptop', String.raw`l\u0061ptop`)],
    ['a number written another way', json.replace('1700000000', '17e8')],
    ['a fraction', json.replace('1700000000', '1700000000.5')],
    ['a negative time', json.replace('1700000000', '-1')],
    ['a time as text', json.replace('1700000000', '"1700000000"')],
    ['minus zero', json.replace('1700000000', '-0')],
    ['an end before the beginning', json.replace('1707776000', '1600000000')],
    ['an end beyond the year 9999', json.replace('1707776000', '253402300800')],
    ['another version', json.replace('"v":1', '"v":2')],
    ['no version', json.replace(',"v":1', '')],
    ['an issuer in lower case', json.replace(masterAddress, masterAddress.toLowerCase())],
    ['a scope that is not the issuer’s', json.replace('"master"', `"${agentAddress}"`)],
    ['an unknown scope', json.replace('"master"', '"admin"')],
    ['no scope', json.replace('"scope":"master",', '')],
    ['a null', json.replace('"laptop"', 'null')],
    ['an empty label', json.replace('laptop', '')],
    ['a label with a line break', json.replace('laptop', String.raw`lap\ntop`)],
    ['a label that turns the text round', json.replace('laptop', 'lap\u202etop')],
    ['half a character', json.replace('laptop', String.raw`\ud800`)],
    ['a label of 65 characters', json.replace('laptop', 'x'.repeat(65))],
    ['a confirmation of another length', json.replace(claims.confirmation!, 'AAAA')],
    ['a kid in upper case', json.replace('0123456789abcdef', '0123456789ABCDEF')],
    ['a byte-order mark', `\ufeff${json}`],
    ['a prototype', json.replace('{', '{"__proto__":{},')],
    ['an array', `[${json}]`],
    ['nothing', ''],
  ])('claims with %s are refused, whoever signed them', (_, text) => {
    expect(text).not.toBe(json);
    expect(decodeClaims(utf8ToBytes(text))).toBeUndefined();
  });

  test('nothing that anybody writes makes it throw', () => {
    const mangled = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string().map((text) => `svc-v1.${text}.${signature}`),
      fc.uint8Array().map((bytes) => `svc-v1.${formatBase64url(bytes)}.${signature}`),
      fc.json({ maxDepth: 30 }).map((text) => `svc-v1.${formatBase64url(utf8ToBytes(text))}.${signature}`),
      fc.tuple(fc.nat(token.length), fc.string({ unit: 'binary' })).map(([at, text]) => token.slice(0, at) + text),
    );
    fc.assert(
      fc.property(mangled, (text) => text === token || !holds(text)),
      runs(20_000),
    );
    expect(holds('svc-v1.'.repeat(1_000_000))).toBe(false);
    expect(findAccessKey(`svc-v1.${formatBase64url(utf8ToBytes('['.repeat(700)))}.${signature}`)).toBeUndefined();
  });
});

describe('agents’ keys', () => {
  test('are what the derivation says, by another implementation', () => {
    for (const index of [0, 1, 255, 256, 2 ** 31, 2 ** 32 - 1]) {
      const counter = Buffer.alloc(4);
      counter.writeUInt32BE(index);
      const expected = createHmac('sha512', master).update('svc-agent-v1').update(counter).digest().subarray(0, 32);
      expect(Buffer.from(deriveAgentKey(master, index))).toEqual(expected);
    }
  });

  test('differ by index and by master', () => {
    const keys = [0, 1, 2].flatMap((index) =>
      [master, asMasterKey(randomBytes(32))].map((one) => addressOf(deriveAgentKey(one, index))),
    );
    expect(new Set(keys).size).toBe(6);
  });

  test.each([-1, 0.5, 2 ** 32, Number.NaN])('there is none of index %d', (index) => {
    expect(() => deriveAgentKey(master, index)).toThrow(RangeError);
  });
});
