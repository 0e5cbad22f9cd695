/**
 * What Node can't make a request of, and would answer by itself with a status and nothing else: what is no HTTP, breaks
 * its rules, or takes too long to come. It is answered in its client's style, as far as that shows, and the connection is
 * closed.
 */
import { randomUUID } from 'node:crypto';
import { ServiceError } from '../core/errors.ts';
import { isRecord } from '../core/json.ts';
import { outwardError, RequestError } from './errors.ts';
import { ANSWER_HEADERS } from './guard.ts';
import { STATUS_CODES } from './http/node-http.ts';
import { requestIds } from './request-ids.ts';
import { dialectOf, type StyleHints } from './wire/dialects.ts';

/**
 * @param error ours, or what the parser or a timer of Node says
 * @param hints of the request, where its head could be read
 * @returns a whole answer, as it goes over the wire
 */
export function answerMalformed(error: unknown, hints: StyleHints = asFarAsRead(error)): string {
  const outward = outwardError(error instanceof RequestError || error instanceof ServiceError ? error : errorOf(error));
  const { status } = outward;
  const body = JSON.stringify(dialectOf(hints).encodeError(outward));
  const headers = {
    ...ANSWER_HEADERS,
    ...requestIds(randomUUID()),
    ...outward.headers,
    date: new Date().toUTCString(),
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`;
}

/** https://nodejs.org/api/http.html#event-clienterror, and the codes of its parser, llhttp. */
function errorOf(error: unknown): RequestError {
  const { code, rawPacket, bytesParsed } = isRecord(error) ? error : {};
  switch (code) {
    case 'HPE_INVALID_METHOD':
      return namesMethod(rawPacket, bytesParsed)
        ? new RequestError('not_implemented', 'This server does not know the method.')
        : noRequest();
    case 'HPE_HEADER_OVERFLOW':
      return new RequestError('headers_too_large', 'The request line and the headers are larger than 16 KiB together.');
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new RequestError('body_too_large', 'The extensions of a chunk are larger than 16 KiB.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new RequestError('request_timeout', 'The request took too long to arrive.');
    default:
      return noRequest();
  }
}

/** The address, where what could not be read begins with a request line. */
function asFarAsRead(error: unknown): StyleHints {
  const { rawPacket } = isRecord(error) ? error : {};
  const line = Buffer.isBuffer(rawPacket) ? lineAt(rawPacket, 0) : '';
  return { url: REQUEST_LINE.exec(line)?.[1] ?? '/', headers: {} };
}

/** A request line but for its method, which the parser does not know (RFC 9110, 9.1), in what it has read. */
function namesMethod(packet: unknown, faultAt: unknown): boolean {
  if (!Buffer.isBuffer(packet) || typeof faultAt !== 'number') return false;
  return REQUEST_LINE.test(lineAt(packet, packet.subarray(0, faultAt).lastIndexOf(LINE_FEED) + 1));
}

/** Empty where it has no end. */
function lineAt(packet: Buffer, begin: number): string {
  const end = packet.indexOf(LINE_FEED, begin);
  return packet.toString('latin1', begin, end === -1 ? begin : end);
}

const LINE_FEED = 10;
const REQUEST_LINE = /^[!#$%&'*+.^_`|~\w-]+ (\S+) HTTP\/1\.[01]\r?$/;

function noRequest(): RequestError {
  return new RequestError('bad_request', 'This is not a valid HTTP/1.1 request.');
}
