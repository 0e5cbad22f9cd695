/** Newline-delimited JSON, Ollama's way to stream: https://github.com/ndjson/ndjson-spec */

export const NDJSON_HEADERS = {
  'content-type': 'application/x-ndjson',
  'cache-control': 'no-store, no-transform',
  // A buffering proxy in between would turn a stream into one late answer.
  'x-accel-buffering': 'no',
} as const;

/** JSON never holds a raw line feed, so one line does. */
export function encodeLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
