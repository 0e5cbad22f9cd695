/** How the pieces of a stream stand on the wire. */

export interface StreamFormat {
  /** Without parameters; what an answer's `content-type` begins with. */
  readonly contentType: string;
  readonly headers: Readonly<Record<string, string>>;
  /** What a silent stream may say without saying anything. */
  readonly keepAlive: string;
}

/** For streams of every format. */
export const STREAM_HEADERS = {
  'cache-control': 'no-store, no-transform',
  // A buffering proxy in between would turn a stream into one late answer.
  'x-accel-buffering': 'no',
} as const;
