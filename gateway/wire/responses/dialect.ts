/** Open Responses, whose errors are OpenAI's. */
import type { Dialect, WireError } from '../dialect.ts';
import { openai } from '../openai/dialect.ts';

/** What the service calls by other names than this style does. */
const PARAMS: Readonly<Record<string, string>> = { messages: 'input', response_format: 'text.format' };

function renamed({ param, ...error }: WireError): WireError {
  return { ...error, param: param === undefined ? undefined : (PARAMS[param] ?? param) };
}

export const responses: Dialect = {
  ...openai,
  name: 'responses',
  paths: ['/responses', '/responses/*'],
  encodeError: (error) => openai.encodeError(renamed(error)),
  encodeStreamError: (error) => openai.encodeStreamError(renamed(error)),
};
