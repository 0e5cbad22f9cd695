/** Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html */

export const EVENT_STREAM_HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-store, no-transform',
  // A buffering proxy in between would turn a stream into one late answer.
  'x-accel-buffering': 'no',
} as const;

/** An event without a name, as the OpenAI styles use it. JSON never holds a raw line feed, so one line does. */
export function encodeEvent(data: unknown): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}

/** An event whose name says what `data` is, as the styles with many kinds of events use it. */
export function encodeNamedEvent(name: string, data: unknown): string {
  return `event: ${name}\n${encodeEvent(data)}`;
}

/** What OpenAI's streams end with. */
export const DONE_EVENT = 'data: [DONE]\n\n';
