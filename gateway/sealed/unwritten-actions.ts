/** What devices have begun while the disk took no note of it, in memory: for as long as the disk would have, and this run. */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { CallReference } from '../../channel/head.ts';

export interface Action {
  readonly deviceId: string;
  readonly key: Uint8Array;
  readonly requestHash: Uint8Array;
  readonly call: CallReference;
  /** It is begun even where the disk takes no note of it: a repeat after a restart would do no harm. */
  readonly mayBeForgotten: boolean;
}

/** What is remembered of one. */
export type BegunBefore = Pick<Action, 'requestHash' | 'call'>;

export interface UnwrittenActions {
  find(action: Pick<Action, 'deviceId' | 'key'>): BegunBefore | undefined;
  /** @returns false where the device has begun as many as it may */
  add(action: Action): boolean;
  /** Of a device that was revoked. */
  forget(deviceId: string): void;
}

interface Unwritten extends BegunBefore {
  readonly begunAtMs: number;
}

interface UnwrittenOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly keptMs: number;
  /** Of one device. */
  readonly maxActions: number;
}

export function createUnwrittenActions({ now, keptMs, maxActions }: UnwrittenOptions): UnwrittenActions {
  /** Of each device by key, the oldest first. */
  const devices = new Map<string, Map<string, Unwritten>>();
  const prune = (): void => {
    for (const [deviceId, actions] of devices) {
      for (const [name, { begunAtMs }] of actions) {
        if (begunAtMs >= now() - keptMs) break;
        actions.delete(name);
      }
      if (actions.size === 0) devices.delete(deviceId);
    }
  };
  return {
    find({ deviceId, key }) {
      prune();
      return devices.get(deviceId)?.get(bytesToHex(key));
    },
    add({ deviceId, key, requestHash, call }) {
      const actions = devices.get(deviceId) ?? new Map<string, Unwritten>();
      if (actions.size >= maxActions) return false;
      devices.set(deviceId, actions.set(bytesToHex(key), { requestHash, call, begunAtMs: now() }));
      return true;
    },
    forget: (deviceId) => void devices.delete(deviceId),
  };
}
