import { describe, expect, test } from 'vitest';
import { isLoopbackAddress, provenanceOf, type GuardSettings } from '../../gateway/guard.ts';
import type { PeerProcess } from '../../gateway/peer-process.ts';

const machineNames = () => ['study.example', 'study', '192.168.1.4', 'fd00::2'];
const open: GuardSettings = { hostnames: ['box.tailnet.example'], allowedOrigins: ['*'], machineNames };
const strict: GuardSettings = { hostnames: [], allowedOrigins: ['https://app.example'], machineNames };
const own: PeerProcess = { kind: 'own' };
const at = (headers: Record<string, string>, peerAddress = '127.0.0.1', settings = open) =>
  provenanceOf({ peerAddress, peer: own, headers: { host: 'localhost:1337', ...headers } }, settings);

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
    'localhost.',
    'box.tailnet.example:1337',
  ])('%s is this machine', (host) => expect(at({ host }).host).toBe('own'));

  test.each([
    'study:1337',
    'STUDY.example',
    'study.local',
    'other.local.:1337',
    'host.docker.internal:1337',
    '192.168.1.4:1337',
    '[fd00::2]:1337',
  ])('%s may be this machine', (host) => expect(at({ host }).host).toBe('ambiguous'));

  test.each([
    'evil.example',
    'localhost.evil.example',
    'evil-localhost',
    'localhost@evil.example',
    '',
    'localhost:1337, evil.example',
    '127.0.0.1.evil.example',
    'localhost:99999999',
    '0.0.0.0:1337',
    '[::]:1337',
    '[0:0:0:0:0:0:0:1]:1337',
    '[::ffff:7f00:1]:1337',
    '[::ffff:127.0.0.1]:1337',
    '192.168.1.5',
    '8.8.8.8',
    'host.docker.internal.evil.example',
    'docker.internal',
    'local',
    'xhost.docker.internal',
  ])('"%s" is not', (host) => expect(at({ host }).host).toBe('foreign'));

  test('a request that names no host at all may be meant for this machine', () => {
    expect(provenanceOf({ peerAddress: '127.0.0.1', peer: own, headers: {} }, open).host).toBe('ambiguous');
  });

  test('a page that came by a name of other machines is not our own', () => {
    for (const headers of [{ origin: 'http://study.local:1337' }, { 'sec-fetch-site': 'same-origin' }]) {
      expect(at({ host: 'study.local:1337', ...headers }).site).toBe('any');
      expect(at({ host: 'study.local:1337', ...headers }, '127.0.0.1', strict).site).toBe('foreign');
    }
  });

  test('is not asked of callers from other machines: a key decides about them', () => {
    expect(at({ host: 'nas.lan' }, '192.168.1.9').host).toBe('own');
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

test.each([
  ['own', true],
  ['untold', true],
  ['other', false],
] as const)('a process that is %s at a loopback address is on this machine: %s', (kind, expected) => {
  const headers = { host: 'localhost:1337' };
  expect(provenanceOf({ peerAddress: '::1', peer: { kind }, headers }, open).isLoopback).toBe(expected);
  expect(provenanceOf({ peerAddress: '192.168.1.9', peer: { kind }, headers }, open).isLoopback).toBe(false);
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
