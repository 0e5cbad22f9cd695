import { describe, expect, test } from 'vitest';
import { isLoopbackAddress, judge, type GuardSettings } from '../../gateway/guard.ts';

const open: GuardSettings = { hostnames: ['box.tailnet.example'], allowedOrigins: ['*'] };
const strict: GuardSettings = { hostnames: [], allowedOrigins: ['https://app.example'] };
const at = (headers: Record<string, string>, peerAddress = '127.0.0.1', settings = open) =>
  judge({ peerAddress, headers: { host: 'localhost:1337', ...headers } }, settings);

test.each([
  ['127.0.0.1', true],
  ['127.8.4.2', true],
  ['::1', true],
  ['::ffff:127.0.0.1', true],
  ['::FFFF:127.0.0.1', true],
  ['::ffff:10.0.0.1', false],
  ['10.0.0.1', false],
  ['::', false],
  ['127.0.0.1.example', false],
  ['fe80::1', false],
  [undefined, false],
])('the address %s is loopback: %s', (address, expected) => {
  expect(isLoopbackAddress(address)).toBe(expected);
});

describe('Host', () => {
  test.each([
    'localhost',
    'LOCALHOST:80',
    'a.localhost:1337',
    '127.0.0.1:1337',
    '[::1]:1337',
    '192.168.1.4',
    'localhost.',
    'box.tailnet.example:1337',
  ])('%s is this machine', (host) => expect(at({ host }).hasForeignHost).toBe(false));

  test.each([
    'evil.example',
    'localhost.evil.example',
    'evil-localhost',
    'localhost@evil.example',
    '',
    'localhost:1337, evil.example',
    '127.0.0.1.evil.example',
    'localhost:99999999',
  ])('"%s" is not', (host) => expect(at({ host }).hasForeignHost).toBe(true));

  test('is not asked of callers from other machines: a key decides about them', () => {
    expect(at({ host: 'nas.lan' }, '192.168.1.9').hasForeignHost).toBe(false);
  });
});

test.each([
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-anything',
  'x-real-ip',
  'via',
  'cf-connecting-ip',
  'cf-ray',
  'tailscale-user-login',
])('a loopback connection with %s is somebody else', (header) => {
  expect(at({ [header]: '127.0.0.1' }).isLoopback).toBe(false);
  expect(at({ [header]: '' }).isLoopback).toBe(false);
});

describe('Origin and Sec-Fetch-Site', () => {
  test.each([
    [{}, 'none'],
    [{ 'sec-fetch-site': 'none' }, 'none'],
    [{ 'sec-fetch-site': 'same-origin' }, 'own'],
    // Another port of this machine is another program's page.
    [{ 'sec-fetch-site': 'same-site' }, 'any'],
    [{ 'sec-fetch-site': 'cross-site' }, 'any'],
    [{ origin: 'http://localhost:1337' }, 'own'],
    [{ origin: 'http://localhost:3000' }, 'any'],
    [{ origin: 'https://evil.example' }, 'any'],
    [{ origin: 'null' }, 'any'],
    [{ origin: '' }, 'any'],
    // What Fetch Metadata says counts for nothing beside a foreign Origin.
    [{ origin: 'https://evil.example', 'sec-fetch-site': 'same-origin' }, 'any'],
  ])('%j is %s while any origin is let in', (headers, site) => {
    expect(at(headers as Record<string, string>).site).toBe(site);
  });

  test.each([
    [{ origin: 'https://app.example' }, 'listed'],
    [{ origin: 'https://APP.example' }, 'listed'],
    [{ origin: 'https://app.example.evil.example' }, 'foreign'],
    [{ origin: 'http://app.example' }, 'foreign'],
    [{ 'sec-fetch-site': 'cross-site' }, 'foreign'],
  ])('%j is %s with a list of origins', (headers, site) => {
    expect(at(headers as Record<string, string>, '127.0.0.1', strict).site).toBe(site);
  });
});
