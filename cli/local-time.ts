/** As the clock on the wall shows it: `2026-01-31 12:00:00`. */
export function localTime(time: string): string {
  return new Date(time).toLocaleString('sv-SE');
}
