/** What a stream is opened for: the second byte of the envelope that goes over it, which is all that a relay is told. */
export const OP = {
  session: 0x01,
  call: 0x03,
  invite: 0x11,
  discoveryOpen: 0x20,
  discoveryProve: 0x22,
  /** The gateway's own: it answers with what it was sent. No envelope has this kind. */
  probe: 0x7e,
} as const;
