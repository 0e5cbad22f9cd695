/**
 * GET requests that may carry a token: to the hub's own origin and to nobody else, however the hub redirects. Only over
 * TLS, but for this machine itself; a redirect never leads out of it.
 */
import { DownloadError } from './download-error.ts';

export interface HttpClientOptions {
  readonly token?: { readonly origin: string; readonly value: string } | undefined;
  /** How long a server may say nothing before the connection counts as broken. */
  readonly silenceMs?: number;
}

export interface HttpRequest {
  readonly signal: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** What the hub said of the file before it redirected to wherever that lies. */
  readonly linked: LinkedFile;
  /** To be read once, or discarded. */
  readonly body: AsyncIterable<Uint8Array>;
  discard(): Promise<void>;
}

interface LinkedFile {
  /** 64 hexadecimal digits. */
  readonly sha256?: string;
}

export interface HttpClient {
  /**
   * Follows redirects; any other status is the caller's to judge.
   * @throws {DownloadError} `unreachable`, `interrupted`, `bad_reference`, `stopped`; while the body is read, too
   */
  get(url: URL, request: HttpRequest): Promise<HttpAnswer>;
}

const SILENCE_MS = 60_000;

/** The hub needs one or two. */
const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

export function createHttpClient({ token, silenceMs = SILENCE_MS }: HttpClientOptions = {}): HttpClient {
  const headersFor = (url: URL, headers: HttpRequest['headers']): Record<string, string> => ({
    // Ranges and lengths are to be those of the file itself.
    'accept-encoding': 'identity',
    'user-agent': 'postern',
    ...headers,
    ...(token !== undefined && token.origin === url.origin ? { authorization: `Bearer ${token.value}` } : {}),
  });

  return {
    async get(start, { signal, headers }) {
      let url = checkUrl(start);
      let linked: LinkedFile = {};
      for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
        const watch = watchSilence(url, { signal, silenceMs });
        const response = await watch.during(
          fetch(url, { headers: headersFor(url, headers), redirect: 'manual', signal: watch.signal }),
        );
        linked = { ...linkedFile(response.headers), ...linked };
        const location = REDIRECTS.has(response.status) ? response.headers.get('location') : null;
        if (location === null) return answer(response, linked, watch);
        await response.body?.cancel();
        url = redirected(url, location);
      }
      throw new DownloadError('bad_answer', `${start.host} redirects again and again.`);
    },
  };
}

function answer(response: Response, linked: LinkedFile, watch: SilenceWatch): HttpAnswer {
  const { body } = response;
  return {
    status: response.status,
    headers: response.headers,
    linked,
    body: body === null ? noBytes() : watchedBody(body, watch),
    discard: async () => {
      await body?.cancel().catch(() => undefined);
    },
  };
}

async function* noBytes(): AsyncIterable<Uint8Array> {}

async function* watchedBody(body: ReadableStream<unknown>, watch: SilenceWatch): AsyncIterable<Uint8Array> {
  const reader = body.getReader();
  try {
    for (;;) {
      // The time that its reader takes over a piece is not the server's.
      const { done, value } = await watch.during(reader.read());
      if (done) return;
      if (!(value instanceof Uint8Array)) throw new TypeError('a response was read as text');
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

interface SilenceWatch {
  readonly signal: AbortSignal;
  /** @throws {DownloadError} in place of whatever went wrong */
  during<Value>(work: Promise<Value>): Promise<Value>;
}

interface WatchOptions {
  readonly signal: AbortSignal;
  readonly silenceMs: number;
}

function watchSilence(url: URL, { signal, silenceMs }: WatchOptions): SilenceWatch {
  const silence = new AbortController();
  return {
    signal: AbortSignal.any([signal, silence.signal]),
    async during(work) {
      const timer = setTimeout(() => silence.abort(), silenceMs);
      try {
        return await work;
      } catch (error) {
        if (signal.aborted) throw new DownloadError('stopped', 'Stopped.', { cause: error });
        throw networkError(url, error, silence.signal.aborted);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

const NAME_ERRORS: ReadonlySet<string> = new Set(['ENOTFOUND', 'EAI_AGAIN', 'EAI_NODATA']);
const REACH_ERRORS: ReadonlySet<string> = new Set(['ENETUNREACH', 'EHOSTUNREACH', 'ECONNREFUSED', 'EACCES']);

function networkError({ host }: URL, cause: unknown, wasSilent: boolean): DownloadError {
  if (cause instanceof DownloadError) return cause;
  if (wasSilent) return new DownloadError('interrupted', `${host} went silent.`, { cause });
  const code = errorCode(cause);
  if (NAME_ERRORS.has(code)) {
    return new DownloadError('unreachable', `${host} cannot be found: is this machine online?`, { cause });
  }
  if (REACH_ERRORS.has(code)) {
    return new DownloadError('unreachable', `${host} cannot be reached (${code}): is this machine online?`, { cause });
  }
  if (/CERT|SELF_SIGNED|TLS|SSL/.test(code)) {
    return new DownloadError('unreachable', `${host} does not prove that it is ${host} (${code}).`, { cause });
  }
  return new DownloadError('interrupted', `The connection to ${host} broke${code && ` (${code})`}.`, { cause });
}

/** `fetch` puts the system's own error under its own. */
function errorCode(error: unknown): string {
  if (!(error instanceof Error)) return '';
  const inner = 'cause' in error ? errorCode(error.cause) : '';
  return inner || ('code' in error && typeof error.code === 'string' ? error.code : '');
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

function isLoopback({ hostname }: URL): boolean {
  return LOOPBACK.test(hostname);
}

/** @throws {DownloadError} `bad_reference` */
export function checkUrl(url: URL): URL {
  if (url.username !== '' || url.password !== '') {
    throw new DownloadError('bad_reference', 'A URL must hold no password: it would end up in logs and histories.');
  }
  if (url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url))) return url;
  throw new DownloadError('bad_reference', `${url.protocol}//${url.host} is not allowed: only https: is.`);
}

function redirected(from: URL, location: string): URL {
  if (!URL.canParse(location, from.href)) throw new DownloadError('bad_answer', `${from.host} redirects nowhere.`);
  const to = checkUrl(new URL(location, from));
  if (!isLoopback(to) || isLoopback(from)) return to;
  throw new DownloadError('bad_reference', `${from.host} redirects to this machine itself, which is not allowed.`);
}

/** For a file in its large-file store the hub's `x-linked-etag` is the file's SHA-256. */
function linkedFile(headers: Headers): LinkedFile {
  const sha256 = /^"?([0-9a-f]{64})"?$/.exec(headers.get('x-linked-etag') ?? '')?.[1];
  return sha256 === undefined ? {} : { sha256 };
}
