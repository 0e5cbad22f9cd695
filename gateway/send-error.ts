/** Every failure on its way out, in the shape of the style that was spoken, and into the log where it is ours. */
import { Readable } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { answerEarly, isHeard } from './body.ts';
import { outwardError, RequestError, type OutwardError } from './errors.ts';
import { encodeOpenAiError } from './wire/openai-error.ts';

export function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  // Nobody is left to tell, and nothing went wrong here.
  if (request.raw.socket.destroyed) return void reply.hijack();
  const outward = outwardFailure(error);
  if (outward.status === 500) {
    request.log.warn(
      { code: outward.code, ...describe(error), method: request.method, route: request.routeOptions.url },
      'request failed',
    );
  }
  const encode = request.routeOptions.config.route?.encodeError ?? encodeOpenAiError;
  const text = JSON.stringify(encode(outward));
  void reply
    .code(outward.status)
    .headers({
      ...outward.headers,
      'content-type': 'application/json; charset=utf-8',
      'content-length': Buffer.byteLength(text),
    })
    .send(
      isHeard(request.raw) || outward.code === 'request_timeout' ? text : Readable.from(answerEarly(text, request.raw)),
    );
}

/** A failed request as its client is told of it. */
export function outwardFailure(error: unknown): OutwardError {
  return outwardError(isClientError(error) ? new RequestError('bad_request', 'The request is malformed.') : error);
}

/** The framework's own complaints about a request; its words are about its own settings. */
function isClientError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof RequestError) return false;
  return 'statusCode' in error && Number(error.statusCode) >= 400 && Number(error.statusCode) < 500;
}

/** What failed and where, without the message: an unexpected error's may quote the prompt or a key. */
function describe(error: unknown): object {
  if (!(error instanceof Error)) return { kind: typeof error };
  return { kind: error.name, at: error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) };
}
