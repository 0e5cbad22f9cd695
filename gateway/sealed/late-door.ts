/**
 * The door as it is before anybody comes: what opens envelopes takes a while to load, and a service that nobody is paired
 * with never needs it.
 */
import type { SealedDoor } from './sealed-door.ts';

/** @param load called once, when the first device comes */
export function lateDoor(load: () => Promise<SealedDoor>): SealedDoor {
  let loading: Promise<SealedDoor> | undefined;
  let door: SealedDoor | undefined;
  let isClosed = false;
  const loaded = async (): Promise<SealedDoor> => {
    loading ??= load();
    door = await loading;
    // It says so itself, to whoever comes now.
    if (isClosed) await door.close();
    return door;
  };
  return {
    async *handle(op, source, bytes) {
      yield* (await loaded()).handle(op, source, bytes);
    },
    challenge: async (source) => (await loaded()).challenge(source),
    // Nothing goes on behind a door that nobody has come in by.
    revoke: async (kids) => (await loading)?.revoke(kids),
    async close() {
      isClosed = true;
      await (await loading)?.close();
    },
    counts: () => door?.counts() ?? { sessions: 0, calls: 0 },
  };
}
