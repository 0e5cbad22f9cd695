/**
 * The paired devices as the command line reaches them: through the server that runs, which ends what a revoked device
 * has under way; where none runs, in the database itself.
 */
import * as z from 'zod';
import { deviceResourceSchema, encodeDevice, type DeviceResource } from '../gateway/wire/admin/pairings.ts';
import type { Revocation } from '../identity/node/key-revocation.ts';
import { createAccessKeyTable } from '../identity/node/access-key-table.ts';
import { createDeviceTable, recordOf } from '../identity/node/device-table.ts';
import type { CommandContext } from './command.ts';
import { hasDatabase, parseRevocation, withDatabase, type NotWritten } from './key-admin.ts';
import { findLiveServer, type LiveServer } from './live-server.ts';
import { withRegistries } from './registries-here.ts';

export interface DeviceAdmin {
  list(): Promise<readonly DeviceResource[]>;
  /** Of one that is there. */
  rename(id: string, name: string): Promise<void>;
  /** Of one that is there. */
  revoke(id: string): Promise<Revocation & NotWritten>;
}

export async function findDeviceAdmin(context: CommandContext): Promise<DeviceAdmin> {
  const server = await findLiveServer(context.home);
  return server === undefined ? databaseAdmin(context) : serverAdmin(server);
}

const listSchema = z.object({ devices: z.array(deviceResourceSchema) });

function serverAdmin(server: LiveServer): DeviceAdmin {
  return {
    list: async () => listSchema.parse(await server.ask('GET', 'devices')).devices,
    rename: async (id, name) => void (await server.ask('POST', `devices/${id}`, { body: { name } })),
    revoke: async (id) => parseRevocation(await server.ask('DELETE', `devices/${id}`)),
  };
}

function databaseAdmin(context: CommandContext): DeviceAdmin {
  return {
    list: async () => listHere(context.home),
    rename: (id, name) =>
      withRegistries(context, ({ pairings }) => {
        pairings.devices.rename(id, name);
      }),
    revoke: (id) => withRegistries(context, ({ pairings }) => pairings.devices.revoke(id)),
  };
}

/** Without opening the identity; looking makes nothing. */
function listHere(home: string): readonly DeviceResource[] {
  if (!hasDatabase(home)) return [];
  return withDatabase(home, (database) => {
    createAccessKeyTable(database);
    return createDeviceTable(database)
      .list()
      .map((row) => encodeDevice(recordOf(row)));
  });
}
