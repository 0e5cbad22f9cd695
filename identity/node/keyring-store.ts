/** Secrets in the operating system's credential store. */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { findBase64url, formatBase64url } from '../../channel/base64url.ts';
import { openEntry } from './keyring-entry.ts';
import type { SecretStore } from './secret-store.ts';
import { IdentityError, REPAIR } from './secret-store.ts';

/** A store that works answers in milliseconds; one that takes longer waits for its owner to unlock it. */
const ANSWER_TIMEOUT_MS = 3000;

const NAMES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  darwin: 'the Keychain',
  win32: 'the Windows Credential Manager',
};
export const storeName = NAMES[process.platform] ?? 'the Secret Service (GNOME Keyring, KWallet)';

export type KeyringState =
  | 'works'
  /** There is none on this machine, or none that this session can reach. */
  | 'absent'
  /** There is one, and it takes nothing in. */
  | 'locked';

/**
 * @param program `keyring-probe.js`, compiled
 * @returns after `limitMs` at the latest
 */
export async function probeKeyring(program: URL, limitMs = ANSWER_TIMEOUT_MS): Promise<KeyringState> {
  const child = spawn(process.execPath, [fileURLToPath(program)], {
    stdio: ['ignore', 'pipe', 'ignore'],
    timeout: limitMs,
    killSignal: 'SIGKILL',
  });
  const [answer, [exitCode]] = await Promise.all([text(child.stdout), once(child, 'exit')]);
  if (exitCode === 0 && (answer === 'works' || answer === 'absent')) return answer;
  // It waited for its owner, or a broken library took it down. Either way nothing may be put there.
  return 'locked';
}

/** @param home `SVC_HOME`, resolved; each has entries of its own */
export function createKeyringStore(home: string): SecretStore {
  const accountOf = (name: string): string => `${name}.${homeHash(home)}`;
  return {
    kind: 'keyring',
    description: `Secrets are in this system's credential store: ${storeName}.`,
    async get(name) {
      const found = await answered((signal) => openEntry(accountOf(name)).then((entry) => entry.getPassword(signal)));
      return found === null ? undefined : decodeSecret(name, found);
    },
    async set(name, secret) {
      await answered((signal) =>
        openEntry(accountOf(name)).then((entry) => entry.setPassword(formatBase64url(secret), signal)),
      );
    },
    delete: (name) => answered((signal) => openEntry(accountOf(name)).then((entry) => entry.deletePassword(signal))),
  };
}

/** Tells the entries of one `SVC_HOME` from another's. */
function homeHash(home: string): string {
  return createHash('sha256').update(home).digest('hex').slice(0, 16);
}

function decodeSecret(name: string, found: string): Uint8Array {
  const secret = findBase64url(found);
  if (secret !== undefined) return secret;
  throw new IdentityError(
    'corrupt',
    `the credential store's entry "${name}" of the service "postern" is not what was written there. ${REPAIR}`,
  );
}

async function answered<Answer>(ask: (signal: AbortSignal) => Promise<Answer>): Promise<Answer> {
  const limit = AbortSignal.timeout(ANSWER_TIMEOUT_MS);
  try {
    return await Promise.race([ask(limit), rejectedBy(limit)]);
  } catch (cause) {
    throw lockedError(cause);
  }
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

export function lockedError(cause?: unknown): IdentityError {
  return new IdentityError(
    'locked',
    `${storeName} does not open. Unlock it (log in to the desktop, or open its own program), then try again.`,
    { cause },
  );
}
