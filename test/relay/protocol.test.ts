/** What `relay/wire/PROTOCOL.md` says, compared with the code. */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, test } from 'vitest';
import { isProven } from '../../relay/registration-proof.ts';
import { formatRoutingId, routingIdOf } from '../../relay/routing-id.ts';
import { RELAY_CODE } from '../../relay/wire/codes.ts';
import {
  decodeFrame,
  encodeFrame,
  MAX_FRAME_BYTES,
  MAX_GREETING_BYTES,
  MAX_PAYLOAD_BYTES,
  SUBPROTOCOL,
  TAG_CLASS,
} from '../../relay/wire/frame.ts';
import { OP } from '../../relay/wire/op.ts';
import { registrationMessage } from '../../relay/wire/registration.ts';

const root = resolve(import.meta.dirname, '../..');
const protocol = readFileSync(resolve(root, 'relay/wire/PROTOCOL.md'), 'utf8');

const bytesOf = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** Two columns of each row of the tables whose first column has this form. */
function rowsOf(first: RegExp): readonly (readonly [string, string])[] {
  return protocol.split('\n').flatMap((line) => {
    const [, one = '', other = ''] = line.split('|').map((cell) => cell.trim());
    return first.test(one) ? [[one.replaceAll('`', ''), other.replaceAll('`', '')] as const] : [];
  });
}

/** The words after a name in the blocks of the document. */
function wordsAfter(name: string): readonly string[] {
  return new RegExp(`^${name} +([0-9a-f]{8,}.*)$`, 'mu').exec(protocol)?.[1]?.split(/ +/u) ?? [];
}

const examples = rowsOf(/^[A-Z]{4,}\b/u);
const exampleOf = (name: string) => bytesOf(examples.find(([words]) => words.startsWith(name))?.[1] ?? '');

test('each type of frame has the number that it says, and an example that is one', () => {
  const types = rowsOf(/^`[01][0-9]`$/u);
  const exampled = new Set<string>();
  for (const [words, hex] of examples) {
    const frame = decodeFrame(bytesOf(hex));
    const name = frame.type.toUpperCase();
    expect(words.split(/[ ,]/u)[0]).toBe(name);
    expect(hexOf(encodeFrame(frame))).toBe(hex);
    expect(types).toContainEqual([hex.slice(0, 2), name]);
    exampled.add(name);
  }
  expect([...exampled]).toEqual(types.map(([, name]) => name));
});

test('there are no other types of frames', () => {
  const numbers = rowsOf(/^`[01][0-9]`$/u).map(([number]) => number);
  const known = Array.from({ length: 256 }, (_, type) => type.toString(16).padStart(2, '0')).filter((type) => {
    try {
      return decodeFrame(bytesOf(`${type}0000000001`)) !== undefined;
    } catch (error) {
      return !String(error).includes('unknown type');
    }
  });
  expect(numbers).toEqual(known);
});

test('its codes, classes, ops and sizes are the code’s', () => {
  expect(rowsOf(/^[0-9]{1,2}$/u).filter(([, name]) => name in RELAY_CODE)).toEqual(
    Object.entries(RELAY_CODE).map(([name, code]) => [String(code), name]),
  );
  const classes = rowsOf(/^[0-2]$/u).filter(([, name]) => !(name in RELAY_CODE));
  expect(classes.map(([number]) => Number(number))).toEqual(Object.values(TAG_CLASS));
  for (const op of Object.values(OP)) expect(protocol).toContain(`\`${op.toString(16).padStart(2, '0')}\``);
  for (const size of [MAX_FRAME_BYTES, MAX_PAYLOAD_BYTES, MAX_GREETING_BYTES])
    expect(protocol).toContain(`${size.toLocaleString('en')} bytes`);
  expect(protocol).toContain(SUBPROTOCOL);
});

test('its registration is one that a relay takes, on that connection alone', () => {
  const hello = decodeFrame(exampleOf('HELLO'));
  const register = decodeFrame(exampleOf('REGISTER,'));
  const registered = decodeFrame(exampleOf('REGISTERED'));
  if (hello.type !== 'hello' || register.type !== 'register' || registered.type !== 'registered')
    throw new Error('an example is missing');
  expect(hexOf(register.publicKey)).toBe(wordsAfter('GR').join());
  expect(hexOf(register.signature)).toBe(wordsAfter('signature').join());
  expect(hexOf(registrationMessage(hello, register))).toBe(wordsAfter('signed').join());
  expect(isProven(hello, register)).toBe(true);
  expect(isProven({ ...hello, nonce: new Uint8Array(32) }, register)).toBe(false);
  expect(isProven({ ...hello, origin: 'wss://other.example' }, register)).toBe(false);
  const routingId = routingIdOf(register.publicKey);
  expect(wordsAfter('rid')).toEqual([hexOf(routingId), formatRoutingId(routingId)]);
  expect(hexOf(registered.routingId)).toBe(hexOf(routingId));
});

test('the tests that it names are there', () => {
  const named = [...protocol.matchAll(/`(test\/[^`]+)`/gu)].map(([, path]) => path ?? '');
  expect(named.length).toBeGreaterThan(8);
  expect(named.filter((path) => !existsSync(resolve(root, path)))).toEqual([]);
});
