/** Why a stream or a connection ended, as RESET, GOAWAY and ERROR carry it; and the errors that are made of it. */

export const RELAY_CODE = {
  protocol: 1,
  flow: 2,
  offline: 3,
  notAllowed: 4,
  tooMany: 5,
  rate: 6,
  quota: 7,
  replaced: 8,
  revoked: 9,
  internal: 10,
  timeout: 11,
  draining: 12,
  moved: 13,
} as const;

const WORDS: ReadonlyMap<number, string> = new Map([
  [RELAY_CODE.protocol, 'the other side broke the protocol'],
  [RELAY_CODE.flow, 'more was sent than was granted'],
  [RELAY_CODE.offline, 'the gateway is not connected to the relay'],
  [RELAY_CODE.notAllowed, 'the relay does not allow it'],
  [RELAY_CODE.tooMany, 'there are too many of them at once'],
  [RELAY_CODE.rate, 'it was asked for too often'],
  [RELAY_CODE.quota, 'the quota of this day is used up'],
  [RELAY_CODE.replaced, 'another connection took its place'],
  [RELAY_CODE.revoked, 'the device was revoked'],
  [RELAY_CODE.internal, 'something failed on the other side'],
  [RELAY_CODE.timeout, 'nothing came in time'],
  [RELAY_CODE.draining, 'the relay is being shut down'],
  [RELAY_CODE.moved, 'the gateway is at another relay now'],
]);

/** A code in plain words, for the owner. */
export function wordsOf(code: number): string {
  return WORDS.get(code) ?? `code ${code}, which is not known here`;
}

/** A stream or connection that ended before its time, and why. What a relay says is a hint, never proof. */
export class RelayError extends Error {
  override readonly name = 'RelayError';
  readonly code: number;

  constructor(code: number, message = wordsOf(code)) {
    super(message);
    this.code = code;
  }
}
