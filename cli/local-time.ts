/** To the minute, upwards: an invite's code tells no more. `2026-01-31 12:01` */
export function localMinute(timeMs: number): string {
  return new Date(Math.ceil(timeMs / 60_000) * 60_000).toLocaleString('sv-SE').slice(0, -':00'.length);
}

/** As the clock on the wall shows it: `2026-01-31 12:00:00`. */
export function localTime(time: string): string {
  return new Date(time).toLocaleString('sv-SE');
}
