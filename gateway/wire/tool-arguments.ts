/** The arguments of a tool call that comes back as part of a conversation: JSON within JSON, with limits of its own. */
import { JsonLimitError } from '../../core/json/json-error.ts';
import { JSON_LIMITS } from '../../core/json/json-limits.ts';
import { JsonReader } from '../../core/json/json-reader.ts';
import { RequestError } from '../errors.ts';

/** Of all calls of a conversation together; a single one of that size takes some 20 ms. A million tokens fit. */
const MAX_BYTES = 4 * 1024 * 1024;
const MAX_NODES = 50_000;

/** Arguments that an earlier answer got wrong stay the text they were. @throws {RequestError} */
export type ParseToolArguments = (text: string) => unknown;

/** For one conversation, whose calls share the limits. */
export function createToolArgumentsParser(): ParseToolArguments {
  let bytes = 0;
  let nodes = 0;
  return (text) => {
    bytes += text.length;
    if (bytes > MAX_BYTES) throw tooMuch(`are longer than ${MAX_BYTES / 1024 / 1024} MiB`);
    const reader = new JsonReader({ ...JSON_LIMITS, maxNodes: MAX_NODES - nodes });
    try {
      reader.push(Buffer.from(text === '' ? '{}' : text));
      return reader.end();
    } catch (error) {
      if (error instanceof JsonLimitError) throw tooMuch('have too many values, or are nested too deep');
      return text;
    } finally {
      nodes += reader.nodes;
    }
  };
}

function tooMuch(what: string): RequestError {
  return new RequestError('bad_request', `The arguments of the tool calls in this conversation ${what}.`);
}
