/** How times are told. @param atS seconds since 1970 */
export function isoTimeOf(atS: number): string {
  return new Date(atS * 1000).toISOString();
}
