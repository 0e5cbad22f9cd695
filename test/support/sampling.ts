/** How much a property or fuzz test tries, and from which seed; `THOROUGH=1` runs long counts in full. */
export const seed = Number(process.env['SEED'] ?? 20_26);
export const isThorough = process.env['THOROUGH'] !== undefined && process.env['THOROUGH'] !== '';

/** @param full the count of a thorough run; otherwise a twentieth of it, and at least 20 */
export function runs(full: number): { readonly numRuns: number; readonly seed: number } {
  return { numRuns: isThorough ? full : Math.max(20, Math.ceil(full / 20)), seed };
}
