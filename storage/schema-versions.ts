/**
 * Which version of each module's tables this program knows. A database that has newer ones, or a module that is not in
 * here, was written by a newer program, and is refused before anything in it is read or changed.
 */
const KNOWN_VERSIONS = {
  access_keys: 1,
  audit: 1,
  clock: 1,
  devices: 1,
  invites: 3,
  jobs: 1,
  model_details: 1,
  model_digests: 1,
  relay_epochs: 1,
  request_log: 2,
  responses: 3,
  sealed_actions: 1,
} as const;

/** The database was written by a newer version of the program. The message is for the owner. */
export class NewerDatabaseError extends Error {
  override readonly name = 'NewerDatabaseError';
}

/** @throws {NewerDatabaseError} for what this program does not know */
export function assertKnownVersion(module: string, version: number): void {
  const known: Readonly<Record<string, number>> = KNOWN_VERSIONS;
  if (version <= (known[module] ?? 0)) return;
  throw new NewerDatabaseError(
    `state.db was written by a newer version of Postern (${module} ${version}). Update Postern, or use another SVC_HOME.`,
  );
}

/** So that the table above is never behind the modules. */
export function requireListed(module: string, version: number): void {
  const known: Readonly<Record<string, number>> = KNOWN_VERSIONS;
  if (known[module] !== version) throw new TypeError(`schema-versions.ts does not say ${module}: ${version}`);
}
