/** The two names under which clients look for what names their request, in every answer. */
export function requestIds(id: string): Readonly<Record<'x-request-id' | 'request-id', string>> {
  return { 'x-request-id': id, 'request-id': id };
}
