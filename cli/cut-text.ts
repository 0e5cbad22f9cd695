/** What a revocation tells its owner of requests that did not end by themselves. */
export function cutText(cut: number): string {
  if (cut === 0) return '';
  const requests = cut === 1 ? 'One request' : `${cut} requests`;
  return ` ${requests} did not end in time and had to be cut off.`;
}
