/** Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html */
import { STREAM_HEADERS, type StreamFormat } from './stream-format.ts';

const CONTENT_TYPE = 'text/event-stream';

export const eventStream: StreamFormat = {
  contentType: CONTENT_TYPE,
  headers: { 'content-type': `${CONTENT_TYPE}; charset=utf-8`, ...STREAM_HEADERS },
  // A comment.
  keepAlive: ': keep-alive\n\n',
};

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

/** The same event with the id by which a reader that comes back says how far it got (`Last-Event-ID`). */
export function withEventId(id: string, event: string): string {
  return `id: ${id}\n${event}`;
}
