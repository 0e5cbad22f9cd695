/**
 * The access keys as the command line reaches them: through the server that runs, which ends what goes on under a key
 * that is revoked; where none runs, in the database itself.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { printable } from '../core/printable.ts';
import { openDatabase, type Database } from '../storage/database.ts';
import { findRemedy } from '../storage/disk-fault.ts';
import { durableNow } from '../storage/durable-clock.ts';
import {
  encodeKey,
  keyResourceSchema,
  accessKeyParamsOf,
  type CreateKeyBody,
  type KeyResource,
} from '../gateway/wire/admin/access-keys.ts';
import { createAccessKeyCheck, type AccessKeyVerdict } from '../identity/node/access-key-check.ts';
import { UNKNOWN_REVOCATION, type Revocation, type RevocationOfKeys } from '../identity/node/key-revocation.ts';
import { createAccessKeyTable } from '../identity/node/access-key-table.ts';
import { openIdentity } from '../identity/node/open-identity.ts';
import type { CommandContext } from './command.ts';
import { identityOptions } from '../service/identity-options.ts';
import { findLiveServer, type LiveServer } from './live-server.ts';
import { withRegistries } from './registries-here.ts';

export interface MadeKey extends KeyResource {
  readonly token: string;
}

export interface KeyAdmin {
  create(body: CreateKeyBody): Promise<MadeKey>;
  list(): Promise<readonly KeyResource[]>;
  revoke(id: string): Promise<Revocation & NotWritten>;
  /** @returns the ids of those that counted until now, and how much under them had to be cut off */
  revokeAll(): Promise<RevocationOfKeys & NotWritten>;
}

/** Why a revocation is not durable. */
export interface NotWritten {
  /** Such as `storage_full`; undefined where it is durable, or the disk works again. */
  readonly reason?: string | undefined;
}

/** What the owner has to know of a revocation that is not durable. */
export function notDurableText({ reason }: NotWritten): string {
  const why = reason === undefined ? '' : ` (${printable(reason)})`;
  return (
    `The revocation is in force, but could not be written to the disk${why}. The service keeps trying; if it ends ` +
    `before that works, what was revoked is valid again. ${findRemedy(reason ?? '') ?? ''}`
  ).trimEnd();
}

export async function findKeyAdmin(context: CommandContext): Promise<KeyAdmin> {
  const server = await findLiveServer(context.home);
  return server === undefined ? databaseAdmin(context) : serverAdmin(server);
}

const madeSchema = keyResourceSchema.extend({ token: z.string() });
const listSchema = z.object({ keys: z.array(keyResourceSchema) });
const durability = { durable: z.boolean(), reason: z.string().optional() };
const allRevokedSchema = z.object({ revoked: z.array(z.string()), cut: z.int(), ...durability });

const revokedSchema = z.object({ already: z.boolean(), cut: z.int(), ...durability });

/** What the running service answers to the revocation of a key or a device. */
export function parseRevocation(answer: unknown): Revocation & NotWritten {
  const { already, durable, ...told } = revokedSchema.parse(answer);
  return { result: already ? 'already' : 'revoked', isDurable: durable, ...told };
}

function serverAdmin(server: LiveServer): KeyAdmin {
  return {
    create: async (body) => madeSchema.parse(await server.ask('POST', 'keys', { body })),
    list: async () => listSchema.parse(await server.ask('GET', 'keys')).keys,
    async revoke(id) {
      const { keys } = listSchema.parse(await server.ask('GET', 'keys'));
      if (keys.every((key) => key.id !== id)) return UNKNOWN_REVOCATION;
      return parseRevocation(await server.ask('DELETE', `keys/${id}`));
    },
    async revokeAll() {
      const { durable, ...ended } = allRevokedSchema.parse(await server.ask('DELETE', 'keys'));
      return { ...ended, isDurable: durable };
    },
  };
}

function databaseAdmin(context: CommandContext): KeyAdmin {
  return {
    create: (body) =>
      withRegistries(context, ({ keys: registry }) => {
        const { token, key } = registry.create(accessKeyParamsOf(body));
        return { token, ...encodeKey(key, Date.now()) };
      }),
    list: async () => listHere(context.home),
    revoke: async (id) =>
      hasDatabase(context.home)
        ? withRegistries(context, ({ keys: registry }) => registry.revoke(id))
        : UNKNOWN_REVOCATION,
    revokeAll: async () =>
      hasDatabase(context.home)
        ? withRegistries(context, ({ keys: registry }) => registry.revokeAll())
        : { revoked: [], cut: 0, isDurable: true },
  };
}

/** What is kept of the keys of this folder, without opening its identity; looking makes nothing. */
export function listHere(home: string): readonly KeyResource[] {
  if (!hasDatabase(home)) return [];
  return withDatabase(home, (database) =>
    createAccessKeyTable(database)
      .list()
      .map((key) => encodeKey(key, durableNow(database, Date.now()))),
  );
}

/** Whether a key counts, without its counting as a use. @throws {IdentityError} where the identity does not open */
export async function verifyHere(context: CommandContext, token: string): Promise<AccessKeyVerdict> {
  const identity = await openIdentity(await identityOptions(context));
  return withDatabase(context.home, (database) => {
    const table = { ...createAccessKeyTable(database), touch: () => undefined };
    return createAccessKeyCheck({ table, identity, nowS: () => Math.floor(durableNow(database, Date.now()) / 1000) })(
      token,
    );
  });
}

export function hasDatabase(home: string): boolean {
  return existsSync(join(home, 'state.db'));
}

export function withDatabase<Result>(home: string, use: (database: Database) => Result): Result {
  const database = openDatabase(home);
  try {
    return use(database);
  } finally {
    database.close();
  }
}
