/** What a handler is told of a body, and how much of a long one is read in one go. */
import { describe, expect, test } from 'vitest';
import { RequestError } from '../../gateway/errors.ts';
import type { BodyLease } from '../../gateway/body-budget.ts';
import { RequestBody, readBody } from '../../gateway/request-body.ts';

const KIB = 1024;

/** Room for everything; says what was taken. */
function newLease(): BodyLease & { readonly held: () => number } {
  let held = 0;
  return {
    take: async (bytes) => void (held += bytes),
    release: () => void (held = 0),
    held: () => held,
  };
}

async function* pieces(...parts: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? Buffer.from(part) : part;
}

function bodyOf(text: string | Uint8Array): RequestBody {
  const body = new RequestBody({ keep: true });
  body.push(typeof text === 'string' ? Buffer.from(text) : text);
  return body;
}

describe('a handler that asks for the value is told what is wrong', () => {
  test.each<[string, string]>([
    ['', 'no body'],
    [' \n', 'not valid JSON'],
    ['{', 'not valid JSON'],
    ['{"a":NaN}', 'not valid JSON'],
    ['{"a":1}{', 'not valid JSON'],
    [`${'['.repeat(50_000)}${']'.repeat(50_000)}`, 'nested more than 100'],
    [`${'{"a":'.repeat(101)}1${'}'.repeat(101)}`, 'nested more than 100'],
    [`[${'{},'.repeat(10_000)}{}]`, 'an array with more than 10000 items'],
  ])('a body such as %.20s', (text, message) => {
    const body = bodyOf(text);
    expect(() => body.json()).toThrow(RequestError);
    expect(() => body.json()).toThrow(message);
  });

  test.each([[[0x22, 0xff, 0xfe]], [[0x22, 0xc3, 0x28, 0x22]], [[0x22, 0xed, 0xa0, 0x80, 0x22]]])(
    'invalid UTF-8 %j',
    (raw) => {
      expect(() => bodyOf(Uint8Array.from([...raw, 0x22])).json()).toThrow('UTF-8');
    },
  );

  test('an error never quotes the body', () => {
    expect(() => bodyOf('{"prompt":"my secret",}').json()).toThrow(
      /^The body is not valid JSON \(at position \d+\)\.$/,
    );
  });
});

test('a body that is wrong in its first bytes is counted to its end, and none of it is kept', async () => {
  const long = Buffer.alloc(256 * KIB, 'x');
  const lease = newLease();
  const body = await readBody(pieces('nonsense ', long, long), { keep: true, takeTurn: async () => undefined, lease });
  expect(lease.held()).toBe(0);
  expect(body.bytes).toBe(9 + 512 * KIB);
  expect(() => body.json()).toThrow('not valid JSON');
});

test('one that is not to be kept is counted', async () => {
  const lease = newLease();
  const body = await readBody(pieces('{"a":1}'), {
    keep: false,
    takeTurn: () => Promise.reject(new Error('no turn')),
    lease,
  });
  expect(body.bytes).toBe(7);
  expect(body.head()).toHaveLength(0);
});

test('of a long body, however it comes, 64 KiB are read in one turn; a short one waits for none', async () => {
  let turns = 0;
  const lease = newLease();
  const takeTurn = async (): Promise<void> => void (turns += 1);
  const text = JSON.stringify({ a: 'x'.repeat(1024 * KIB - 8) });
  const whole = await readBody(pieces(text), { keep: true, takeTurn, lease });
  expect(lease.held()).toBe(text.length);
  expect(whole.json()).toEqual(JSON.parse(text));
  expect(turns).toBe(16);
  await readBody(pieces('{"a":', '1}'), { keep: true, takeTurn, lease: newLease() });
  expect(turns).toBe(16);
});

test('the log may see the first 16 KiB, whatever becomes of the rest', async () => {
  const first = Buffer.alloc(10 * KIB, 'a');
  const body = await readBody(pieces(first, first, first), {
    keep: true,
    takeTurn: async () => undefined,
    lease: newLease(),
  });
  expect(Buffer.from(body.head()).toString()).toBe('a'.repeat(16 * KIB));
});
