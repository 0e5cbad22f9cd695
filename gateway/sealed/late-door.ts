/**
 * The door as it is before anybody comes: what opens envelopes takes a while to load, and a service that nobody is paired
 * with never needs it.
 */
import { remembered } from '../../core/remembered.ts';
import type { SealedDoor } from './sealed-door.ts';

/** @param load called when the first device comes, and again by the next one where it failed */
export function lateDoor(load: () => Promise<SealedDoor>): SealedDoor {
  const loading = remembered(load);
  let door: SealedDoor | undefined;
  let isClosed = false;
  const loaded = async (): Promise<SealedDoor> => {
    door = await loading.get();
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
    revoke: async (kids) => (await loading.find())?.revoke(kids) ?? 0,
    async close() {
      isClosed = true;
      await (await loading.find())?.close();
    },
    counts: () => door?.counts() ?? { sessions: 0, calls: 0, heldBytes: 0 },
  };
}
