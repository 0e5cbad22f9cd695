/** What a relay answers over plain HTTP: little, and none of it for a page to embed or to be taken for something else. */
import { STATUS_CODES, type Server, type ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';

const ANSWER_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
} as const;

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

export function send(response: ServerResponse, { status, type, body }: Answer): void {
  response.writeHead(status, { ...ANSWER_HEADERS, 'content-type': type }).end(body);
}

export function answerNotFound(response: ServerResponse): void {
  send(response, { status: 404, type: 'application/json', body: bodyOf(404) });
}

/** Answers on the bare connection what is no request, or is not taken, and closes it. */
export function refuse(socket: Duplex, status: number): void {
  const body = bodyOf(status);
  const headers = {
    ...ANSWER_HEADERS,
    'content-type': 'application/json',
    'content-length': body.length,
    connection: 'close',
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`, () =>
    socket.destroy(),
  );
}

/** Such as `{"error":"not_found"}`. */
function bodyOf(status: number): string {
  return JSON.stringify({ error: (STATUS_CODES[status] ?? '').toLowerCase().replaceAll(' ', '_') });
}

/** https://nodejs.org/api/http.html#event-clienterror */
const MALFORMED: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 413,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** Takes over what Node would answer with a status and nothing else. */
export function refuseMalformed(server: Server): void {
  server.on('checkExpectation', (_request, response: ServerResponse) =>
    send(response, { status: 417, type: 'application/json', body: bodyOf(417) }),
  );
  server.on('clientError', ({ code = '' }: NodeJS.ErrnoException, socket) => {
    if (socket.writable) refuse(socket, MALFORMED[code] ?? 400);
    else socket.destroy();
  });
}
