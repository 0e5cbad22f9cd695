/**
 * A hub for tests: the two routes of Hugging Face's that a download needs, and a second server that holds the files, as
 * its content network does. Both count and can misbehave on request.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { sha256 } from './app-models.ts';

/** What the next download does, once. */
export type Fault =
  | { readonly kind: 'none' }
  | { readonly kind: 'status'; readonly status: number }
  /** Sends so many bytes, then nothing until `release`; then the rest, or nothing ever. */
  | { readonly kind: 'stall' | 'cut'; readonly afterBytes: number }
  | { readonly kind: 'no-ranges' }
  /** Goes on from somewhere else than asked. */
  | { readonly kind: 'wrong-range' }
  | { readonly kind: 'flip-a-byte' }
  /** A page of words, as a captive network has for everything. */
  | { readonly kind: 'page' };

export interface SeenRequest {
  readonly server: 'hub' | 'files';
  readonly path: string;
  readonly authorization: string | undefined;
  readonly range: string | undefined;
  readonly ifRange: string | undefined;
  /** Of the body, as far as it was written. */
  sentBytes: number;
}

export interface StubRepository {
  readonly files: Readonly<Record<string, Buffer>>;
  /** The token that its files ask for. */
  readonly token?: string;
  /** Said of a file in place of its own. */
  readonly sha256?: string;
}

export interface StubHub {
  readonly url: string;
  readonly filesUrl: string;
  readonly repositories: Map<string, StubRepository>;
  /** The first is for the next download; reading a header is none. */
  readonly faults: Fault[];
  readonly requests: SeenRequest[];
  /** Requests for a file or the rest of one, the header's ranges left out. */
  downloads(): readonly SeenRequest[];
  release(): void;
  close(): Promise<void>;
}

/** The files' server can be asked directly, too, at `/<org>/<repo>/<path>`. */
export async function startStubHub(): Promise<StubHub> {
  const state: State = { repositories: new Map(), faults: [], requests: [], stalled: [] };
  const files = await listen((request, response) => void serveFile(state, request, response));
  const hub = await listen((request, response) => serveHub(state, urlOf(files), request, response));
  return {
    url: urlOf(hub),
    filesUrl: urlOf(files),
    ...state,
    downloads: () => state.requests.filter(({ server, range }) => server === 'files' && !/-\d+$/.test(range ?? '')),
    release: () => state.stalled.splice(0).forEach((go) => go()),
    close: async () => {
      for (const server of [hub, files]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

interface State {
  readonly repositories: Map<string, StubRepository>;
  readonly faults: Fault[];
  readonly requests: SeenRequest[];
  readonly stalled: (() => void)[];
}

async function listen(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function urlOf(server: Server): string {
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

function note(state: State, server: SeenRequest['server'], request: IncomingMessage): SeenRequest {
  const { authorization, range } = request.headers;
  const ifRange = request.headers['if-range'];
  const seen: SeenRequest = {
    server,
    path: request.url!,
    authorization,
    range,
    ifRange: ifRange as string,
    sentBytes: 0,
  };
  state.requests.push(seen);
  return seen;
}

function serveHub(state: State, filesUrl: string, request: IncomingMessage, response: ServerResponse): void {
  note(state, 'hub', request);
  const url = new URL(request.url!, 'http://hub');
  const [, tree] = /^\/api\/models\/([^/]+\/[^/]+)\/tree\/main$/.exec(url.pathname) ?? [];
  if (tree !== undefined) return sendTree(state.repositories.get(tree), request, response);
  const [, name = '', path = ''] = /^\/([^/]+\/[^/]+)\/resolve\/main\/(.+)$/.exec(url.pathname) ?? [];
  const repository = state.repositories.get(name);
  const file = repository?.files[decodeURIComponent(path)];
  if (repository === undefined || file === undefined) return void response.writeHead(404).end();
  if (repository.token !== undefined && request.headers.authorization !== `Bearer ${repository.token}`) {
    const status = request.headers.authorization === undefined ? 401 : 403;
    return void response.writeHead(status, { 'x-error-code': 'GatedRepo' }).end();
  }
  response.writeHead(302, {
    location: `${filesUrl}/${name}/${path}?signature=secret`,
    'x-linked-size': file.length,
    'x-linked-etag': `"${repository.sha256 ?? sha256(file)}"`,
  });
  response.end();
}

/** Two entries a page, so that there is more than one. */
function sendTree(repository: StubRepository | undefined, request: IncomingMessage, response: ServerResponse): void {
  if (repository === undefined) return void response.writeHead(401).end('{"error":"Repository not found"}');
  const entries = [
    { type: 'directory', path: 'sub', size: 0, oid: 'x' },
    ...Object.entries(repository.files).map(([path, bytes]) => ({
      type: 'file',
      path,
      size: bytes.length,
      oid: 'x',
      lfs: { oid: repository.sha256 ?? sha256(bytes), size: bytes.length, pointerSize: 135 },
    })),
  ];
  const page = Number(new URL(request.url!, 'http://hub').searchParams.get('cursor') ?? 0);
  const next = `http://${request.headers.host}${request.url!.replace(/&cursor=\d+/, '')}&cursor=${page + 2}`;
  response.writeHead(200, {
    'content-type': 'application/json',
    ...(page + 2 < entries.length ? { link: `<${next}>; rel="next"` } : {}),
  });
  response.end(JSON.stringify(entries.slice(page, page + 2)));
}

async function serveFile(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const seen = note(state, 'files', request);
  const [, name = '', path = ''] = /^\/([^/]+\/[^/]+)\/([^?]+)/.exec(request.url!) ?? [];
  const whole = state.repositories.get(name)?.files[decodeURIComponent(path)];
  if (whole === undefined) return void response.writeHead(404).end();
  const isDownload = !/-\d+$/.test(seen.range ?? '');
  const fault = isDownload ? state.faults.shift() : undefined;
  if (fault?.kind === 'status') return void response.writeHead(fault.status).end();
  if (fault?.kind === 'page') return void response.end('<html>Please log in.</html>');
  const etag = `"${sha256(whole).slice(0, 16)}"`;
  const isRanged = fault?.kind !== 'no-ranges' && (seen.ifRange === undefined || seen.ifRange === etag);
  const [, from, to] = (isRanged && /^bytes=(\d+)-(\d*)$/.exec(seen.range ?? '')) || [];
  const start = Number(from ?? 0) + (fault?.kind === 'wrong-range' ? 1 : 0);
  if (start >= whole.length) return void response.writeHead(416, { 'content-range': `bytes */${whole.length}` }).end();
  const end = Math.min(Number(to || Infinity), whole.length - 1);
  const bytes = Buffer.from(whole.subarray(start, end + 1));
  if (fault?.kind === 'flip-a-byte') bytes[bytes.length - 1]! ^= 1;
  response.writeHead(from === undefined ? 200 : 206, {
    etag,
    'content-length': bytes.length,
    ...(from === undefined ? {} : { 'content-range': `bytes ${start}-${end}/${whole.length}` }),
  });
  await send(state, response, bytes, fault, seen);
}

async function send(
  state: State,
  response: ServerResponse,
  bytes: Buffer,
  fault: Fault | undefined,
  seen: SeenRequest,
): Promise<void> {
  if (fault?.kind !== 'cut' && fault?.kind !== 'stall') {
    response.end(bytes);
    seen.sentBytes = bytes.length;
    return;
  }
  const released = new Promise<void>((resolve) => state.stalled.push(resolve));
  response.write(bytes.subarray(0, fault.afterBytes));
  seen.sentBytes = fault.afterBytes;
  await released;
  if (fault.kind === 'cut') return void response.destroy();
  response.end(bytes.subarray(fault.afterBytes));
  seen.sentBytes = bytes.length;
}
