/**
 * Whose a call is. Whatever two owners shared would tell one of the other, so what calls share (their turns, evaluated
 * tokens) they share with calls of the same owner alone. Who that is, whoever makes the call knows.
 */
export interface CallOwner {
  /** The same for calls of the same owner, and for no other. */
  readonly name: string;
  /** Comes after everybody who is no guest, and takes the place of nothing that they keep where there is another. */
  readonly isGuest: boolean;
}

/** Of calls that the service makes for itself. */
export const SERVICE: CallOwner = { name: '', isGuest: false };
