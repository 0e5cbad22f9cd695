/** Ollama's own routes. */
import type { Dialect } from '../dialect.ts';
import { encodeLine, ndjson } from '../ndjson.ts';
import { encodeOllamaError } from './error.ts';

export const ollama: Dialect = {
  name: 'ollama',
  paths: [
    '/chat',
    '/generate',
    '/embed',
    '/tags',
    '/show',
    '/ps',
    '/version',
    '/create',
    '/copy',
    '/delete',
    '/pull',
    '/push',
    '/blobs/*',
  ],
  prefix: '/api',
  stream: ndjson,
  encodeError: encodeOllamaError,
  encodeStreamError: (error) => encodeLine(encodeOllamaError(error)),
};
