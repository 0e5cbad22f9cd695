/** What a gateway refuses in JSON, in the clear, before it reads what it was sent. Anybody on the way could have written it. */
import { findJsonObject } from '../../channel/json.ts';

export type PlainRefusal = 'busy' | 'offline' | 'gateway_unavailable';

const MEANINGS: ReadonlyMap<unknown, PlainRefusal> = new Map([
  ['rate_limited', 'busy'],
  ['overloaded', 'busy'],
  ['shutting_down', 'offline'],
  ['identity_unavailable', 'gateway_unavailable'],
  ['channel_unavailable', 'gateway_unavailable'],
  ['storage_unavailable', 'gateway_unavailable'],
  ['storage_full', 'gateway_unavailable'],
  ['internal', 'gateway_unavailable'],
]);

/** @returns undefined for anything else, such as what another program would say that has the address by now */
export function findPlainRefusal(bytes: Uint8Array): PlainRefusal | undefined {
  const { error } = findJsonObject(bytes) ?? {};
  return typeof error === 'object' && error !== null && 'code' in error ? MEANINGS.get(error.code) : undefined;
}
