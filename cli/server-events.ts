/**
 * Reads server-sent events, as far as our own server sends them: named, with JSON in one or more lines of data.
 * https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
 */
import { parseBoundedJson } from '../core/json/json-reader.ts';

/** The longest event is a list of all approvals that may wait; this only keeps a broken server from filling memory. */
const MAX_EVENT_CHARACTERS = 8 * 1024 * 1024;

export interface ServerEvent {
  readonly name: string;
  readonly data: unknown;
}

/**
 * Skips comments, the `[DONE]` of OpenAI's streams, and an event that the end of the stream cut off.
 * @throws {JsonError} for data that is not JSON; {RangeError} for an event that never ends
 */
export async function* readServerEvents(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of chunks) {
    text += decoder.decode(chunk, { stream: true });
    const blocks = text.split(/\r?\n\r?\n/);
    text = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = findEvent(block);
      if (event !== undefined) yield event;
    }
    if (text.length > MAX_EVENT_CHARACTERS) throw new RangeError('an event of the server never ends');
  }
}

function findEvent(block: string): ServerEvent | undefined {
  let name = 'message';
  const data: string[] = [];
  for (const line of block.split(/\r?\n/)) {
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/.exec(line) ?? [];
    if (field === 'event') name = value;
    if (field === 'data') data.push(value);
  }
  const text = data.join('\n');
  return text === '' || text === '[DONE]' ? undefined : { name, data: parseBoundedJson(text) };
}
