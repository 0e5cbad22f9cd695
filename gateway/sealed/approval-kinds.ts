/** A device that asks to be paired awaits its owner's word. */
export const pairingApproval = {
  pairing: {
    /** Two for each of the eight invites that can be open. */
    maxPending: 16,
    /** Few, since anybody on the network can ask for one. */
    maxPendingWithCode: 3,
  },
} as const;
