/** How long to wait before the next dial. */

const FIRST_MS = 500;
const MAX_MS = 60_000;

/**
 * Full jitter: anything from nothing up to a bound that doubles. After a relay's restart its gateways come back spread
 * out, and not in waves.
 * @param failures in a row, 1 at least; @param random 0 <= n < 1
 */
export function backoffMs(failures: number, random: () => number): number {
  return random() * Math.min(MAX_MS, FIRST_MS * 2 ** Math.min(failures - 1, 16));
}
