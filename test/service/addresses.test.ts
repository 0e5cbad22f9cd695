import type { networkInterfaces } from 'node:os';
import { expect, test } from 'vitest';
import { reachableUrls } from '../../service/addresses.ts';

type Address = NonNullable<ReturnType<typeof networkInterfaces>[string]>[number];

function address(text: string, internal = false): Address {
  const common = { address: text, netmask: '', mac: '', internal, cidr: null };
  return text.includes(':') ? { ...common, family: 'IPv6', scopeid: 0 } : { ...common, family: 'IPv4' };
}

test('the likeliest address comes first; what no other machine can reach is left out', () => {
  const interfaces = {
    lo: [address('127.0.0.1', true), address('::1', true)],
    docker0: [address('172.17.0.1')],
    'br-1f2e': [address('172.18.0.1'), address('fd00::1')],
    wlan0: [address('fe80::1'), address('2001:db8::7'), address('192.0.2.7')],
    eth0: [address('198.51.100.7')],
  };
  const hosts = ['0.0.0.0', '::'];
  expect(reachableUrls({ port: 1337, hosts, interfaces })).toEqual([
    'http://192.0.2.7:1337',
    'http://198.51.100.7:1337',
    'http://[2001:db8::7]:1337',
    'http://172.17.0.1:1337',
    'http://172.18.0.1:1337',
    'http://[fd00::1]:1337',
  ]);
  expect(reachableUrls({ port: 1337, hosts: ['0.0.0.0'], interfaces })).toEqual([
    'http://192.0.2.7:1337',
    'http://198.51.100.7:1337',
    'http://172.17.0.1:1337',
    'http://172.18.0.1:1337',
  ]);
  expect(reachableUrls({ port: 1337, hosts: ['127.0.0.1', '::1'], interfaces })).toEqual([]);
});
