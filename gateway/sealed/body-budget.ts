/** The memory that request bodies take until their call is answered: bounded for each device, and for all of them. */
export const DEVICE_BODY_BYTES = 64 * 1024 * 1024;
export const ALL_BODY_BYTES = 256 * 1024 * 1024;

export interface BodyBudget {
  /** @returns false where it would be too much; nothing is taken then */
  reserve(device: string, bytes: number): boolean;
  release(device: string, bytes: number): void;
  /** Of all devices. */
  readonly heldBytes: number;
}

export function createBodyBudget(): BodyBudget {
  const byDevice = new Map<string, number>();
  let all = 0;
  return {
    get heldBytes() {
      return all;
    },
    reserve(device, bytes) {
      const held = byDevice.get(device) ?? 0;
      if (held + bytes > DEVICE_BODY_BYTES || all + bytes > ALL_BODY_BYTES) return false;
      byDevice.set(device, held + bytes);
      all += bytes;
      return true;
    },
    release(device, bytes) {
      const left = (byDevice.get(device) ?? 0) - bytes;
      if (left > 0) byDevice.set(device, left);
      else byDevice.delete(device);
      all -= bytes;
    },
  };
}
