import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { redact, redactPath, singleLine } from '../../../gateway/request-log/redaction.ts';
import { runs } from '../../support/sampling.ts';

const SECRET = 'hunter2-Canary';

describe('by the name of its field', () => {
  const names = [
    'password',
    'client_secret',
    'accessToken',
    'api_key',
    'apiKey',
    'X-Api-Key',
    'Authorization',
    'refresh_token',
    'private_key',
    'DB_PASSWORD',
    'passphrase',
    'Cookie',
  ];
  test.each(names)('%s, in JSON however it is written', (name) => {
    const object = { a: 'kept', [name]: SECRET, b: 'kept too' };
    const nested = { arguments: JSON.stringify({ inner: JSON.stringify(object) }) };
    for (const text of [
      JSON.stringify(object),
      JSON.stringify(object, null, 2),
      JSON.stringify(nested),
      JSON.stringify({ [name]: [SECRET, SECRET] }),
      JSON.stringify({ [`${name}s`]: [SECRET, SECRET] }),
      JSON.stringify({ [name]: `with "quotes" and \\ before ${SECRET}` }),
      JSON.stringify(object).slice(0, -20),
    ]) {
      expect(redact(text)).not.toContain(SECRET);
    }
    expect(JSON.parse(redact(JSON.stringify(object)))).toEqual({ a: 'kept', [name]: '[REDACTED]', b: 'kept too' });
    const shown = JSON.parse(redact(JSON.stringify(nested))) as { arguments: string };
    expect(JSON.parse((JSON.parse(shown.arguments) as { inner: string }).inner)).toEqual({
      a: 'kept',
      [name]: '[REDACTED]',
      b: 'kept too',
    });
  });

  test.each(names)('%s, in a header, a form and a variable', (name) => {
    for (const text of [`${name}: ${SECRET}`, `${name}=${SECRET}&x=1`, `export ${name}=${SECRET};`]) {
      expect(redact(text)).not.toContain(SECRET);
    }
  });

  test('a number', () => {
    expect(redact('{"password": 123456, "max_tokens": 5}')).toBe('{"password": "[REDACTED]", "max_tokens": 5}');
  });
});

test.each([
  `Bearer ${SECRET}`,
  'svc-v1.eyJhbGciOiJ.c2ln-nat_ure',
  'SVC:AEBQGIJQGAYDAMBQ',
  'svc:aebqgijqgaydambq',
  'sk-proj-abcdef0123456789',
  'sk-ant-api03-abcdef',
  'sk_live_abcdef012345',
  'ghp_abcdefghijklmnop0123',
  'github_pat_11ABCDEFG0abcdefghij',
  'glpat-abcdefghij0123456789',
  'hf_abcdefghijklmnopqrst',
  'xoxb-123456789012-abcdef',
  'AKIAIOSFODNN7EXAMPLE',
  'AIzaSyA-1234567890abcdefghijklmnopqrstu',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl',
  'gsk_abcdefghijklmnop',
])('by its shape: %s', (secret) => {
  const shown = redact(`Use ${secret} for this, "${secret}" or (${secret}).`);
  expect(shown).not.toContain(secret.replace('Bearer ', ''));
  expect(shown).toMatch(/^Use .*\[REDACTED\] for this, ".*\[REDACTED\]" or \(.*\[REDACTED\]\)\.$/);
});

test('a key in its own block, an invite or a password in an address', () => {
  expect(redact('-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----\nrest')).toBe(
    '[REDACTED]\nrest',
  );
  expect(redact('-----BEGIN PRIVATE KEY-----\nMIIcutoff')).toBe('[REDACTED]');
  expect(redact('https://app.example/#i=AQEAbc-_0123')).toBe('https://app.example/#i=[REDACTED]');
  expect(redact('postgres://me:hunter2@db/x')).toBe('postgres://[REDACTED]@db/x');
});

test('what the request showed as its credential, wherever it stands; a placeholder is none', () => {
  expect(redact('I am opensesame!', ['opensesame'])).toBe('I am [REDACTED]!');
  expect(redact('any of them', ['any'])).toBe('any of them');
});

test.each([
  'What is the capital of France?',
  'The tokenizer splits risk-averse and task-oriented words; sk-learn too.',
  '{"model":"foundation","max_tokens":100,"messages":[{"role":"user","content":"Hello"}]}',
  'http://localhost:1337/v1/models',
])('is left as it is: %s', (text) => {
  expect(redact(text)).toBe(text);
});

const pieces = [
  'a',
  'token',
  '"token":"',
  'password=',
  '\\',
  'password\\',
  '"',
  '://',
  '://a:',
  '@',
  'sk-abcdefghij',
  'eyJ',
  ' ',
  'bearer ',
  '-----BEGIN ',
];

test('takes time in proportion to the text, even for text that is made to take longer', () => {
  // A quadratic pattern would take minutes here, and the test's own limit end it.
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: 3 }), (unit) => {
      redact(unit.join('').repeat(100_000));
    }),
    runs(200),
  );
});

test('no text makes it throw, and doing it twice changes nothing', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.constantFrom(...pieces), fc.string({ unit: 'binary' }))), (some) => {
      const text = some.join('');
      expect(redact(redact(text))).toBe(redact(text));
    }),
    runs(5000),
  );
});

describe('paths', () => {
  test.each([
    ['/v1/models/sk-abcdef0123456', '/v1/models/[REDACTED]'],
    ['/v1/models/%73k-abcdef0123456', '/v1/models/[REDACTED]'],
    ['/v1/models/a%20b', '/v1/models/a%20b'],
    ['/v1/models/%zz', '/v1/models/%zz'],
  ])('%s', (path, shown) => {
    expect(redactPath(path)).toBe(shown);
  });

  test('nothing that steers a terminal', () => {
    expect(singleLine('a\u001b[31mb\nc\u009bd\u202ee\u2028f', 100)).toBe('a?[31mb?c?d?e?f');
    expect(singleLine('x'.repeat(300), 256)).toHaveLength(256);
  });
});
