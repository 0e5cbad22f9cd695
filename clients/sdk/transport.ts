/**
 * The seam between the sealed channel and whatever carries it: bytes there, bytes back. Sessions and calls don't know
 * which transport they go over, and may go on over another one.
 */

/** What is asked for: `/secure/session`, `/secure/call`, `/pair-invite`. */
export type Operation = 'session' | 'call' | 'pair-invite';

export interface Transport {
  /**
   * Sends one request and gives the bytes of its answer as they come, in pieces of any size.
   * Rejects, as the stream errors, if the way breaks. Either ends at once when the signal aborts.
   */
  exchange(
    operation: Operation,
    body: Uint8Array<ArrayBuffer>,
    signal: AbortSignal,
  ): Promise<ReadableStream<Uint8Array>>;
}
