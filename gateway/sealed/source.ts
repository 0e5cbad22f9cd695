/** Where the bytes of an envelope came from, and go back to: an HTTP request, or a stream of a relay's. */
export interface SealedSource {
  readonly transport: 'lan' | 'relay';
  /** Whom limits count this under; see `sourceOf`. */
  readonly clientKey: string;
  /** Fires when nobody is left there to answer. */
  readonly gone: AbortSignal;
  /** Closes it, whatever is still on its way. */
  cut(): void;
}
