/** Newline-delimited JSON, Ollama's way to stream: https://github.com/ndjson/ndjson-spec */
import { STREAM_HEADERS, type StreamFormat } from './stream-format.ts';

const CONTENT_TYPE = 'application/x-ndjson';

export const ndjson: StreamFormat = {
  contentType: CONTENT_TYPE,
  headers: { 'content-type': CONTENT_TYPE, ...STREAM_HEADERS },
  // A space before the next line. An empty line would be one that Ollama's clients parse.
  keepAlive: ' ',
};

/** JSON never holds a raw line feed, so one line does. */
export function encodeLine(value: unknown): string {
  return `${JSON.stringify(value)}\n`;
}
