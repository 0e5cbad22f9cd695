/** The operating system's credential store: GNOME's, in a D-Bus session of the test's own. */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { probeKeyring } from '../../../identity/node/keyring-store.ts';
import { gnomeKeyring, has } from '../../support/requirements.ts';
import { temporaryHome } from './home.ts';

const program = fileURLToPath(new URL('../../../dist/test/identity/node/identity-program.js', import.meta.url));

let home: string;
let remove: () => void;
beforeEach(() => ({ home, remove } = temporaryHome()));
afterEach(() => remove());

interface Report {
  readonly probe: 'works' | 'absent' | 'locked';
  readonly kind?: 'keyring' | 'vault';
  readonly secrets?: readonly string[];
  readonly code?: string;
  readonly says: string;
}

/** Runs a shell script where there is a session bus and nothing on it yet; `$OPEN` runs the program on the home. */
function inSession(script: string): readonly Report[] {
  const desk = join(home, '.desk');
  const { stdout, stderr, status } = spawnSync('dbus-run-session', ['--', 'bash', '-euc', script], {
    encoding: 'utf8',
    env: {
      ...withoutBus(),
      HOME: desk,
      XDG_RUNTIME_DIR: desk,
      XDG_DATA_HOME: join(desk, 'data'),
      XDG_CACHE_HOME: join(desk, 'cache'),
      OPEN: `${process.execPath} ${program} ${home}`,
      UNLOCK: 'gnome-keyring-daemon --unlock --components=secrets',
      LOCK:
        'dbus-send --session --print-reply --dest=org.freedesktop.secrets /org/freedesktop/secrets ' +
        'org.freedesktop.Secret.Service.Lock array:objpath:/org/freedesktop/secrets/collection/login',
    },
  });
  if (status !== 0) throw new Error(`the session ended with ${String(status)}:\n${stderr}`);
  return stdout
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Report);
}

/** Directly, as on a machine without a desktop. */
function headless(...args: string[]): Report {
  const { stdout, stderr } = spawnSync(process.execPath, [program, home, ...args], {
    encoding: 'utf8',
    env: withoutBus(),
  });
  expect(stderr).toBe('');
  return JSON.parse(stdout) as Report;
}

function withoutBus(): NodeJS.ProcessEnv {
  const { DBUS_SESSION_BUS_ADDRESS: _, XDG_RUNTIME_DIR: __, ...environment } = process.env;
  return environment;
}

const files = (): readonly string[] => readdirSync(home).filter((name) => !name.startsWith('.'));

test.each([
  ['waits for its owner', 'setInterval(() => {}, 1000)'],
  ['takes the library down', 'process.abort()'],
  ['prints something else', "process.stdout.write('workss')"],
  ['answers and then fails', "process.stdout.write('works'); process.exitCode = 1"],
])('a store that %s is locked, not absent', async (_, script) => {
  const path = join(home, 'probe.mjs');
  writeFileSync(path, script);
  expect(await probeKeyring(pathToFileURL(path), 1000)).toBe('locked');
});

describe('without a credential store', () => {
  test('secrets go into the vault, and that is said', () => {
    const first = headless();
    expect(first).toMatchObject({ probe: 'absent', kind: 'vault', says: expect.stringContaining('vault.json') });
    expect(headless().secrets).toEqual(first.secrets);
    expect(files()).toEqual(['change.lock', 'identity.json', 'vault.json', 'vault.key']);
  });

  test('one that is asked for is missed, and nothing is made', () => {
    expect(headless('keyring')).toMatchObject({ code: 'unavailable', says: expect.stringContaining('identity.store') });
    expect(files()).toEqual([]);
  });
});

describe.runIf(has(gnomeKeyring))('GNOME Keyring', () => {
  const unlocked = 'mkdir -m 700 "$HOME"; echo -n pw | $UNLOCK >/dev/null';

  test('unlocked, keeps the secrets: nothing of them is in the folder', () => {
    const [first, second] = inSession(`${unlocked}; $OPEN; $OPEN`);
    expect(first).toMatchObject({ probe: 'works', kind: 'keyring', says: expect.stringContaining('credential store') });
    expect(second?.secrets).toEqual(first?.secrets);
    expect(new Set(first?.secrets).size).toBe(4);
    expect(files()).toEqual(['identity.json']);
    expect(readFileSync(join(home, 'identity.json'), 'utf8')).toContain('"keyring"');
  });

  test('keeps nothing of the probe', () => {
    const secretTool = 'secret-tool search --all service postern 2>&1 | grep -c "^attribute.username" || true';
    inSession(`${unlocked}; $OPEN; test "$(${secretTool})" = 4`);
  });

  test('locked at the first start: an error that names the way out, and nothing is made', () => {
    const [report] = inSession('mkdir -m 700 "$HOME"; $OPEN');
    expect(report).toMatchObject({
      probe: 'locked',
      code: 'locked',
      says: expect.stringContaining('identity.store vault'),
    });
    expect(files()).toEqual([]);
  });

  test('locked later: an error, no second identity; unlocked again, it is the same', () => {
    const [first, locked, unlockedAgain] = inSession(
      `${unlocked}; $OPEN; $LOCK >/dev/null; $OPEN; echo -n pw | $UNLOCK --replace >/dev/null; $OPEN`,
    );
    expect(first?.kind).toBe('keyring');
    expect(locked).toMatchObject({ probe: 'locked', code: 'locked', says: expect.stringContaining('Unlock') });
    expect(locked?.secrets).toBeUndefined();
    expect(unlockedAgain?.secrets).toEqual(first?.secrets);
    expect(files()).toEqual(['identity.json']);
  });

  test('out of reach later: an error, never the vault', () => {
    expect(inSession(`${unlocked}; $OPEN`)[0]?.kind).toBe('keyring');
    for (const preference of ['auto', 'keyring']) {
      expect(headless(preference)).toMatchObject({ code: 'unavailable', says: expect.stringContaining('24 words') });
    }
    expect(headless('vault')).toMatchObject({ code: 'mismatch' });
    expect(existsSync(join(home, 'vault.json'))).toBe(false);
  });

  test('with an entry gone: an error that names it', () => {
    const [, report] = inSession(`${unlocked}; $OPEN; $OPEN auto gateway`);
    expect(report).toMatchObject({ probe: 'works', code: 'missing', says: expect.stringContaining('"gateway"') });
  });

  test('coming up after secrets went into the vault changes nothing', () => {
    const first = headless();
    expect(inSession(`${unlocked}; $OPEN`)[0]).toMatchObject({ kind: 'vault', secrets: first.secrets });
  });

  test('told to use the vault, leaves the store alone', () => {
    expect(inSession(`${unlocked}; $OPEN vault`)[0]).toMatchObject({ probe: 'works', kind: 'vault' });
  });

  test('another folder has another identity', () => {
    const other = temporaryHome();
    try {
      const [mine, theirs] = inSession(`${unlocked}; $OPEN; \${OPEN% *} ${other.home}`);
      expect(theirs?.kind).toBe('keyring');
      expect(theirs?.secrets).not.toEqual(mine?.secrets);
    } finally {
      other.remove();
    }
  });

  test('takes up what it holds for a folder that was emptied', () => {
    const [first, second] = inSession(`${unlocked}; $OPEN; rm ${home}/identity.json; $OPEN`);
    expect(second?.secrets).toEqual(first?.secrets);
  });
});
