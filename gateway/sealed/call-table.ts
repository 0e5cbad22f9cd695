/**
 * The calls of all devices, from their first record until nobody can want their answer any more, and the memory that
 * their answers take. A device that has too much loses what is kept only for the case that it comes back: answers that
 * were delivered, the oldest first, and records that were taken.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { equalBytes } from '../../channel/bytes.ts';
import type { CallReference } from '../../channel/head.ts';
import type { PublicKey } from '../../channel/keys.ts';
import type { AnswerMemory } from './replay-buffer.ts';
import { callId, type SealedCall } from './sealed-call.ts';

export const DEVICE_ANSWER_BYTES = 32 * 1024 * 1024;
export const ALL_ANSWER_BYTES = 128 * 1024 * 1024;
/** What each device may have, however much the others have. */
const SHARE_BYTES = 4 * 1024 * 1024;
/** What a call takes beside its records: keys, signals, timers. */
export const CALL_BYTES = 8 * 1024;

interface DeviceCalls {
  /** The oldest first. */
  readonly calls: Set<SealedCall>;
  bytes: number;
}

export class CallTable {
  readonly #calls = new Map<string, SealedCall>();
  readonly #devices = new Map<string, DeviceCalls>();
  #bytes = 0;

  get size(): number {
    return this.#calls.size;
  }

  /** What all answers take. */
  get heldBytes(): number {
    return this.#bytes;
  }

  add(call: SealedCall): void {
    const name = bytesToHex(call.deviceKey);
    const device = this.#devices.get(name) ?? { calls: new Set(), bytes: 0 };
    this.#devices.set(name, device);
    this.#calls.set(call.id, call);
    device.calls.add(call);
    this.#count(device, CALL_BYTES);
  }

  remove(call: SealedCall): void {
    const name = bytesToHex(call.deviceKey);
    const device = this.#devices.get(name);
    if (device?.calls.delete(call) !== true) return;
    this.#calls.delete(call.id);
    this.#count(device, -CALL_BYTES);
    if (device.calls.size === 0) this.#devices.delete(name);
  }

  /** A call of this device; another's is not there. */
  find(reference: CallReference, deviceKey: PublicKey): SealedCall | undefined {
    const call = this.#calls.get(callId(reference));
    return call !== undefined && equalBytes(call.deviceKey, deviceKey) ? call : undefined;
  }

  /** The oldest first. */
  of(deviceKey: PublicKey): readonly SealedCall[] {
    return [...(this.#devices.get(bytesToHex(deviceKey))?.calls ?? [])];
  }

  /** For the answers of this device, each for as long as its call is in the table. */
  memoryOf(deviceKey: PublicKey): AnswerMemory {
    const name = bytesToHex(deviceKey);
    return {
      count: (bytes) => {
        const device = this.#devices.get(name);
        if (device !== undefined) this.#count(device, bytes);
      },
      isScarce: () => {
        const device = this.#devices.get(name);
        return device !== undefined && this.#isScarce(device);
      },
    };
  }

  #count(device: DeviceCalls, bytes: number): void {
    device.bytes += bytes;
    this.#bytes += bytes;
    if (bytes > 0) this.#reclaim(device);
  }

  #isScarce({ bytes }: DeviceCalls): boolean {
    return bytes > DEVICE_ANSWER_BYTES || (bytes > SHARE_BYTES && this.#bytes > ALL_ANSWER_BYTES);
  }

  #reclaim(device: DeviceCalls): void {
    for (const call of device.calls) {
      if (!this.#isScarce(device)) return;
      call.giveMemoryBack();
    }
  }
}
