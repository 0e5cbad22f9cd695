/** A machine whose cryptography gives wrong answers: nothing is served with it. */
import { spawn } from 'node:child_process';
import * as nodeCrypto from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { cliPath, startServer } from '../support/server.ts';

/** Each is put in place of what Node has, before the program begins. */
const FAULTS = {
  'ChaCha20-Poly1305': `const make = crypto.createCipheriv;
    crypto.createCipheriv = (...args) => {
      const cipher = make(...args);
      const update = cipher.update.bind(cipher);
      cipher.update = (data) => { const out = update(data); out[0] ^= 1; return out; };
      return cipher;
    };`,
  X25519: `const agree = crypto.diffieHellman;
    crypto.diffieHellman = (keys) => { const secret = agree(keys); secret[31] ^= 1; return secret; };`,
  'SHA-256': `const hash = crypto.hash;
    crypto.hash = (name, data, encoding) => {
      const digest = hash(name, data, encoding);
      if (typeof digest !== 'string') digest[0] ^= 1;
      return digest;
    };`,
  'ML-KEM-768': `const encapsulate = crypto.encapsulate;
    crypto.encapsulate = (...args) => {
      const made = encapsulate(...args);
      made.sharedKey[0] ^= 1;
      return made;
    };`,
};

const hasMlKem = 'encapsulate' in nodeCrypto;

const PLANT = `import crypto from 'node:crypto';\nimport { syncBuiltinESMExports } from 'node:module';\n`;

/** Starts the service as it was built. @returns how it ended, or that it listens */
async function serve(fault: string, settings: object = {}) {
  const home = await mkdtemp(join(tmpdir(), 'postern-broken-'));
  const planted = join(home, 'planted.mjs');
  await writeFile(planted, `${PLANT}${fault}\nsyncBuiltinESMExports();\n`);
  await writeFile(join(home, 'settings.json'), JSON.stringify(settings));
  const child = spawn(process.execPath, ['--import', planted, cliPath, 'serve', '--port', '0', '--json'], {
    env: { ...process.env, SVC_HOME: home, HOME: home, SVC_IDENTITY_STORE: 'vault' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => (said += chunk.toString()));
  const listens = once(child.stdout, 'data').then(() => 'listens' as const);
  const ended = once(child, 'close').then(([code]) => code as number | null);
  const outcome = await Promise.race([listens, ended]);
  child.kill();
  await ended;
  await rm(home, { recursive: true, force: true });
  return { outcome, said };
}

describe('a machine whose cryptography breaks after the start', () => {
  /** ChaCha20-Poly1305, wrong from when there is such a file. */
  const later = FAULTS['ChaCha20-Poly1305'].replace(
    'out[0] ^= 1;',
    'if (fs.existsSync(`${process.env.SVC_HOME}/broken`)) out[0] ^= 1;',
  );

  test('no device is let in, not even where it seems whole again; the owner is told why, once; all else goes on', async () => {
    const home = await mkdtemp(join(tmpdir(), 'postern-broken-'));
    const planted = join(home, 'planted.mjs');
    await writeFile(planted, `import fs from 'node:fs';\n${PLANT}${later}\nsyncBuiltinESMExports();\n`);
    const server = await startServer({ home, program: ['--import', planted, cliPath, 'serve'] });
    try {
      await writeFile(join(home, 'broken'), '');
      for (const path of ['/secure/session', '/secure/call', '/pair-invite', '/pair', '/secure/session']) {
        const answer = await fetch(`${server.url}${path}`, { method: 'POST', body: 'hello' });
        expect([answer.status, await answer.json()]).toEqual([
          503,
          { error: expect.objectContaining({ code: 'channel_unavailable' }) },
        ]);
        await rm(join(home, 'broken'), { force: true });
      }
      expect(server.log().split('fails its self-test, so no paired device is let in')).toHaveLength(2);
      expect(server.log()).not.toMatch(/^ +at |internal error/m);
      const health = await (await fetch(`${server.url}/health`)).json();
      expect(health).toMatchObject({ status: 'degraded', degraded: [{ reason: 'channel_crypto' }] });
      expect((await fetch(`${server.url}/v1/models`)).status).toBe(200);
    } finally {
      await server.stop();
      await rm(home, { recursive: true, force: true });
    }
  });
});

describe('a machine that computes wrong', () => {
  test.each(Object.entries(FAULTS).filter(([name]) => name !== 'ML-KEM-768' || hasMlKem))(
    '%s: the service says so and does not listen',
    async (name, fault) => {
      const { outcome, said } = await serve(fault);
      expect([outcome, said.includes(`${name} fails its self-test`)]).toEqual([1, true]);
      expect(said).not.toContain('    at ');
    },
  );

  test('nothing: the service listens', async () => expect((await serve('')).outcome).toBe('listens'));

  test('ChaCha20-Poly1305 of Node, and the owner has chosen another: the service listens', async () => {
    const { outcome } = await serve(FAULTS['ChaCha20-Poly1305'], { 'channel.crypto': 'noble' });
    expect(outcome).toBe('listens');
  });
});
