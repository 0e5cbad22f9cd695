/** What a relay knows a gateway by, against another implementation of the same definitions. */
import { createHash, createPublicKey, hkdfSync, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { deriveRelayKey } from '../../identity/relay-key.ts';
import { asMasterKey } from '../../identity/secret-keys.ts';

const master = asMasterKey(new Uint8Array(32).fill(5));
const ORIGIN = 'wss://relay.example:8443';

function expectedSeed(origin: string, epoch: number): Buffer {
  const info = Buffer.concat([Buffer.from([0, origin.length]), Buffer.from(origin), Buffer.from([0, 0, 0, epoch])]);
  return Buffer.from(hkdfSync('sha256', master, 'svc-v1 relay', info, 32));
}

test('is derived as written', () => {
  const { publicKey, routingId } = deriveRelayKey(master, ORIGIN);
  const header = Buffer.from('302e020100300506032b657004220420', 'hex');
  const der = Buffer.concat([header, expectedSeed(ORIGIN, 0)]);
  const { x } = createPublicKey({ key: der, format: 'der', type: 'pkcs8' } as never).export({ format: 'jwk' });
  expect(Buffer.from(publicKey)).toEqual(Buffer.from(x!, 'base64url'));
  const hash = createHash('sha256').update('svc-v1 rid').update(publicKey).digest();
  expect(Buffer.from(routingId)).toEqual(hash.subarray(0, 15));
});

test('signs so that others can check it', () => {
  const { publicKey, sign } = deriveRelayKey(master, ORIGIN);
  const key = { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(publicKey).toString('base64url') };
  const message = Buffer.from('register');
  const signed = sign(message);
  expect(verify(null, message, createPublicKey({ key, format: 'jwk' }), signed)).toBe(true);
  expect(verify(null, Buffer.from('another'), createPublicKey({ key, format: 'jwk' }), signed)).toBe(false);
});

test('is another one at another relay, and in another epoch', () => {
  const names = [
    deriveRelayKey(master, ORIGIN),
    deriveRelayKey(master, 'wss://relay.example'),
    deriveRelayKey(master, ORIGIN, 1),
    deriveRelayKey(asMasterKey(new Uint8Array(32).fill(6)), ORIGIN),
  ].map(({ routingId }) => Buffer.from(routingId).toString('hex'));
  expect(new Set(names).size).toBe(4);
});
