/** Sizes as people read them, in decimal units as disks and downloads have them. */
const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** `0 B`, `512 kB`, `4.7 GB`. */
export function formatBytes(bytes: number): string {
  const [first, ...larger] = UNITS;
  let [value, unit]: [number, string] = [bytes, first];
  for (const next of larger) {
    if (value < 999.5) break;
    [value, unit] = [value / 1000, next];
  }
  const digits = value < 9.95 && unit !== 'B' && unit !== 'kB' ? 1 : 0;
  return `${unit === 'GB' || unit === 'TB' ? value.toFixed(1) : value.toFixed(digits)} ${unit}`;
}
