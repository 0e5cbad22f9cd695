/** Notices that this machine has another network, or was asleep: what waits to dial again need not wait any longer. */
import type { SetTimer } from '../core/timer.ts';
import { ownInterfaces } from './addresses.ts';

const LOOK_EVERY_MS = 5000;
/** A timer that is so late was asleep, and not only busy. */
const ASLEEP_MS = 30_000;

interface NetworkWatch {
  readonly setTimer: SetTimer;
  readonly onChange: () => void;
  /** Milliseconds since 1970. */
  readonly now?: () => number;
  /** The addresses that this machine has, in any words. */
  readonly addresses?: () => string;
}

export function watchNetwork(options: NetworkWatch): { close(): void } {
  const { setTimer, onChange, now = Date.now, addresses = addressesHere } = options;
  let known = addresses();
  let lookedAtMs = now();
  let cancel = setTimer(LOOK_EVERY_MS, look);
  function look(): void {
    cancel = setTimer(LOOK_EVERY_MS, look);
    const [before, beforeMs] = [known, lookedAtMs];
    [known, lookedAtMs] = [addresses(), now()];
    if (known !== before || lookedAtMs - beforeMs > LOOK_EVERY_MS + ASLEEP_MS) onChange();
  }
  return { close: () => cancel() };
}

function addressesHere(): string {
  return Object.values(ownInterfaces())
    .flatMap((addresses = []) => addresses.map(({ address }) => address))
    .join(' ');
}
