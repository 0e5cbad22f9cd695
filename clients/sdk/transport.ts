/**
 * The seam between the sealed channel and whatever carries it: bytes there, bytes back. Sessions and calls don't know
 * which transport they go over, and may go on over another one.
 */

/** What is asked for: `/secure/session`, `/secure/call`, `/pair-invite`. */
export type Operation = 'session' | 'call' | 'pair-invite';

/** Which way it is: within the gateway's own network, or through a relay from anywhere. */
export interface PathDescription {
  readonly kind: 'lan' | 'relay';
  readonly url: string;
}

export interface Transport {
  /** What is shown of it. Ways of the kind `lan` are nearer than all others. */
  readonly path?: PathDescription;

  /**
   * Sends one request and gives the bytes of its answer as they come, in pieces of any size.
   * Rejects, as the stream errors, if the way breaks: with a `TransportError` where more is known than that. Either ends
   * at once when the signal aborts.
   */
  exchange(
    operation: Operation,
    body: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>>;

  /** Gives up what is kept between exchanges, and ends those that run. A later exchange begins anew. */
  close?(): void;
}
