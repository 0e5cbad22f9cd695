/**
 * Where secrets are kept: under a name of small letters, digits and hyphens each, in the operating system's credential
 * store (`keyring-store.ts`) or, where there is none, in a sealed file (`vault-store.ts`). And what can go wrong with
 * either, with the way out.
 */
export interface SecretStore {
  readonly kind: StoreKind;
  /** One plain sentence for the owner. */
  readonly description: string;
  /** `undefined` where nothing has this name. @throws {IdentityError} where that can't be told */
  get(name: string): Promise<Uint8Array | undefined>;
  /** When this resolves, the secret survives the end of the process. @throws {IdentityError} */
  set(name: string, secret: Uint8Array): Promise<void>;
  /** @returns false where nothing had this name. @throws {IdentityError} */
  delete(name: string): Promise<boolean>;
}

export type StoreKind = 'keyring' | 'vault';

export type IdentityErrorCode =
  /** The store is there and does not open. */
  | 'locked'
  /** There is no such store on this machine. */
  | 'unavailable'
  /** A secret that was put there is there no more. */
  | 'missing'
  /** What is there is not what was written. */
  | 'corrupt'
  /** The passphrase is another one than the vault was made with. */
  | 'wrong_passphrase'
  /** The settings, the folder and the store contradict each other. */
  | 'mismatch'
  /** There is an identity already. */
  | 'exists'
  /** None was made yet. */
  | 'no_identity';

/** The message is for the owner and names the remedy. It never holds a secret. */
export class IdentityError extends Error {
  override readonly name = 'IdentityError';
  readonly code: IdentityErrorCode;

  constructor(code: IdentityErrorCode, message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
  }
}

/** Writes a file whole or not at all; `mode` is its permission bits. */
export type WriteFile = (path: string, content: string, mode: number) => Promise<void>;

/** Runs one after the other, across processes too, what is to change the files of one `SVC_HOME`. Not to be nested. */
export type Exclusively = <Result>(change: () => Promise<Result>) => Promise<Result>;

/** The remedy for a secret that is gone or damaged. */
export const REPAIR =
  'Put back a copy of the store; or "postern identity restore - --replace" with the 24 words brings back what they hold ' +
  'and makes the rest anew, and paired devices have to be paired again.';
