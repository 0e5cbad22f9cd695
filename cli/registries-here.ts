/** What belongs to the identity of this `SVC_HOME`, for a command that does the service's work while none runs. */
import { lockHome } from '../core/config/home.ts';
import { openDatabase } from '../storage/database.ts';
import { durableNow } from '../storage/durable-clock.ts';
import { openOrCreateIdentity } from '../identity/node/open-identity.ts';
import { identityOptions } from '../service/identity-options.ts';
import { openRegistries, type Registries } from '../service/registries.ts';
import { CommandError, type CommandContext } from './command.ts';

/**
 * Only while no server can start: the identity may have to be made, and a stream under a key must not go on.
 * @throws {CommandError} where one runs
 */
export async function withRegistries<Result>(
  context: CommandContext,
  use: (registries: Registries) => Promise<Result> | Result,
): Promise<Result> {
  const lock = lockHome(context.home);
  if (lock === undefined) {
    throw new CommandError('the service runs, but does not answer. Try again; if it goes on, "postern stop" ends it.');
  }
  try {
    const identity = await openOrCreateIdentity(await identityOptions(context));
    const database = openDatabase(context.home);
    try {
      const now = (): number => durableNow(database, Date.now());
      return await use(openRegistries({ identity, database, onError: () => undefined, now }));
    } finally {
      database.close();
    }
  } finally {
    lock.release();
  }
}
