/**
 * The identity of a running service, and what hangs on it: the audit log, the access keys and the pairings. Opened beside
 * the service, not before it: a store that waits to be unlocked must not keep anybody from what needs no key.
 */
import type { AuditLog } from '../core/audit/audit-log.ts';
import type { AuditEntry } from './audit-events.ts';
import { createRefusalTally, type RefusalTally } from '../core/audit/refusal-tally.ts';
import { SettingsError } from '../core/config/settings.ts';
import type { Database } from '../storage/database.ts';
import { findDiskFault } from '../storage/disk-fault.ts';
import type { StorageHealth } from '../storage/storage-health.ts';
import { setProcessTimer } from '../core/timer.ts';
import { identityUnavailable, type AccessKeySource, type Pairings } from '../gateway/access-key-source.ts';
import type { AccessKeyRegistry } from '../identity/node/access-key-registry.ts';
import type { Postpone } from '../identity/node/key-revocation.ts';
import type { Identity } from '../identity/node/open-identity.ts';
import { IdentityError } from '../identity/node/secret-store.ts';
import { internalErrorText, reasonOf } from './internal-error.ts';
import { openRegistries } from './registries.ts';

/** After a store did not open, so that callers who show keys can't make the service knock at it all the time. */
const PAUSE_MS = 10_000;

export interface OpenedIdentity {
  readonly identity: Identity;
  readonly audit: AuditLog<AuditEntry>;
  readonly keys: AccessKeyRegistry;
  readonly pairings: Pairings;
}

export interface IdentityService extends AccessKeySource {
  /** Fulfilled when it is open, however late that is, and before any of it is used. */
  readonly opened: Promise<OpenedIdentity>;
  /** Begins to open the identity; whether it worked is said to the owner. Never rejects. */
  begin(): Promise<void>;
  readonly refusals: Pick<RefusalTally, 'note'>;
  /** Throws as long as the identity is not open, so that nothing happens that could not be told. */
  readonly audit: AuditLog<AuditEntry>;
  /** Resolves when nothing of it uses the database any more. */
  close(): Promise<void>;
}

export interface IdentityServiceOptions {
  readonly openIdentity: () => Promise<Identity>;
  readonly database: Database;
  readonly say: (words: string) => void;
  /** Milliseconds since 1970, by which things expire. */
  readonly now: () => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly storage: Pick<StorageHealth, 'note' | 'retry'>;
}

export function createIdentityService(options: IdentityServiceOptions): IdentityService {
  let lastSaid: string | undefined;
  const tell = (words: string): void => {
    if (words !== lastSaid) options.say(words);
    lastSaid = words;
  };
  const opening = new Opening(options, tell);
  const audit: AuditLog<AuditEntry> = { append: (entry) => requireOpen(opening.opened).audit.append(entry) };
  const refusals = createRefusalTally({
    log: audit,
    setTimer: setProcessTimer,
    // Counted on until the store opens, and the failure to open is said already.
    onError(error) {
      options.storage.note(error);
      if (opening.opened !== undefined) tell(auditLogText(error));
    },
  });
  return {
    opened: opening.whenOpened,
    begin: () => opening.open().then(noResult, noResult),
    open: async () => (await forCaller(opening.open())).keys,
    openPairings: async () => (await forCaller(opening.open())).pairings,
    refusals,
    audit,
    async close() {
      await opening.close();
      if (opening.opened !== undefined) flush(refusals, tell);
    },
  };
}

/** Opens the identity: one attempt at a time, until one has worked. */
class Opening {
  readonly whenOpened: Promise<OpenedIdentity>;
  readonly #options: IdentityServiceOptions;
  readonly #tell: (words: string) => void;
  readonly #whenOpened = Promise.withResolvers<OpenedIdentity>();
  #opened: OpenedIdentity | undefined;
  #attempt: Promise<OpenedIdentity> | undefined;
  #notBeforeMs = 0;
  #isClosed = false;
  #cancelRetry = (): void => undefined;

  constructor(options: IdentityServiceOptions, tell: (words: string) => void) {
    this.#options = options;
    this.#tell = tell;
    this.whenOpened = this.#whenOpened.promise;
  }

  get opened(): OpenedIdentity | undefined {
    return this.#opened;
  }

  open(): Promise<OpenedIdentity> {
    if (this.#opened !== undefined) return Promise.resolve(this.#opened);
    if (this.#attempt !== undefined) return this.#attempt;
    const isTooSoon = this.#options.elapsed() < this.#notBeforeMs;
    if (this.#isClosed || isTooSoon) return Promise.reject(new Error('the identity did not open'));
    this.#attempt = this.#try().finally(() => {
      this.#attempt = undefined;
    });
    return this.#attempt;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancelRetry();
    await this.#attempt?.catch(noResult);
  }

  async #try(): Promise<OpenedIdentity> {
    try {
      const identity = await this.#options.openIdentity();
      if (this.#isClosed) throw new Error('the service ended meanwhile');
      const opened = build(identity, this.#options);
      this.#opened = opened;
      this.#tell(identity.store.description);
      this.#whenOpened.resolve(opened);
      return opened;
    } catch (error) {
      if (!this.#isClosed) this.#failed(error);
      throw error;
    }
  }

  #failed(error: unknown): void {
    this.#notBeforeMs = this.#options.elapsed() + PAUSE_MS;
    this.#tell(failureText(error));
    // A disk gets better by itself. A store that is locked would ask its owner again and again.
    if (findDiskFault(error) === undefined) return;
    this.#cancelRetry = setProcessTimer(PAUSE_MS, () => this.#retry());
  }

  #retry(): void {
    this.#notBeforeMs = 0;
    this.open().catch(noResult);
  }
}

async function forCaller(opening: Promise<OpenedIdentity>): Promise<OpenedIdentity> {
  try {
    return await opening;
  } catch (cause) {
    throw identityUnavailable(PAUSE_MS / 1000, cause);
  }
}

function build(identity: Identity, options: IdentityServiceOptions): OpenedIdentity {
  const { database, say, now } = options;
  const onError = (error: unknown): void =>
    say(`postern: a device was paired anew, and a call that it made before did not end${reasonOf(error)}.`);
  const postpone = postponing(options);
  return { identity, ...openRegistries({ identity, database, onError, now, postpone }) };
}

function postponing({ storage, say }: Pick<IdentityServiceOptions, 'storage' | 'say'>): Postpone {
  const onFailure = (error: unknown): void => say(`${internalErrorText(error)}\n${REVOKED_UNTIL_THE_END}`);
  return (error, write) => {
    const isOfDisk = findDiskFault(error) !== undefined;
    if (isOfDisk) storage.retry(write, onFailure);
    storage.note(error);
    return isOfDisk;
  };
}

const REVOKED_UNTIL_THE_END =
  'A revocation that waited for the disk could not be written because of that. What was revoked stays refused until ' +
  'the service ends, and is valid again after that: revoke it again then.';

function requireOpen(opened: OpenedIdentity | undefined): OpenedIdentity {
  if (opened === undefined) throw new Error('the identity is not open');
  return opened;
}

/** The messages of other errors are not written for the owner, and could quote anything. */
function failureText(error: unknown): string {
  const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
  const isForOwner = error instanceof IdentityError || error instanceof SettingsError;
  const reason = isForOwner ? error.message : `the identity does not open${code}.`;
  return `postern: ${reason}\nUntil it opens, programs on this machine are served, and callers with an access key are not.`;
}

function flush(refusals: RefusalTally, say: (words: string) => void): void {
  try {
    refusals.flush();
  } catch (error) {
    say(auditLogText(error));
  }
}

function auditLogText(error: unknown): string {
  return `postern: the audit log can't be written${reasonOf(error)}. Is the disk full?`;
}

function noResult(): void {
  // What became of it was said already.
}
