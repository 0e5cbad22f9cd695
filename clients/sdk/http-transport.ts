/**
 * The channel over plain HTTP. The status is not looked at: whatever answers, it is the bytes that have to prove it.
 */
import { TransportError } from './errors.ts';
import type { Fetch } from './platform.ts';
import { Paths } from './paths.ts';
import type { Operation, Transport } from './transport.ts';

const PATHS: Readonly<Record<Operation, string>> = {
  session: '/secure/session',
  call: '/secure/call',
  'pair-invite': '/pair-invite',
};

/** Nobody on the way learns more than the bytes say, and nobody may send them elsewhere. */
const DISCREETLY: RequestInit = {
  cache: 'no-store',
  credentials: 'omit',
  redirect: 'error',
  referrerPolicy: 'no-referrer',
};

/** @param url from `httpUrls` */
function httpTransport(url: string, fetch: Fetch, paths = PATHS): Transport {
  return {
    path: { kind: 'lan', url },
    async exchange(operation, body, signal) {
      const headers = { 'content-type': 'application/octet-stream' };
      const request = { ...DISCREETLY, method: 'POST', headers, body, signal };
      const { body: answer } = await fetch(url + paths[operation], request).catch((error: unknown) => {
        throw hasNotConnected(error) ? new TransportError({ wasNeverSent: true, cause: error }) : error;
      });
      return answer ?? new Blob([]).stream();
    },
  };
}

/**
 * Whether a path broke before there was a connection, so that nothing can have been sent over it. Node says which system
 * call failed, and names several where a name has several addresses. Browsers don't say: then nothing is known.
 */
function hasNotConnected(error: unknown): boolean {
  const failed = error instanceof Error ? error.cause : undefined;
  const all: readonly unknown[] = failed instanceof AggregateError ? failed.errors : [failed];
  return all.length > 0 && all.every((one) => CONNECTING.has(syscallOf(one)));
}

/** The error codes themselves would not do: EHOSTUNREACH also ends a connection that was there. */
const CONNECTING: ReadonlySet<unknown> = new Set(['connect', 'getaddrinfo']);

function syscallOf(error: unknown): unknown {
  return error instanceof Error && 'syscall' in error ? error.syscall : undefined;
}

const CODE_PATHS: Readonly<Record<Operation, string>> = { session: '/pair', call: '/pair', 'pair-invite': '/pair' };

/** All that belongs to pairing by a code goes one way, and over HTTP alone. @param url from `httpUrls` */
export function codeTransport(url: string, fetch: Fetch): Transport {
  return httpTransport(url, fetch, CODE_PATHS);
}

/** Asks for a challenge, whatever the operation. @param url from `httpUrls` */
export function challengeTransport(url: string, fetch: Fetch): Transport {
  return {
    async exchange(_operation, _body, signal) {
      const { body } = await fetch(`${url}/pair/challenge`, { ...DISCREETLY, signal });
      return body ?? new Blob([]).stream();
    },
  };
}

/** The addresses first, as they are nearer than whatever else leads there. */
export function pathsTo(urls: readonly string[], fetch: Fetch, others: readonly Transport[] = []): Paths {
  return new Paths([...httpUrls(urls).map((url) => httpTransport(url, fetch)), ...others]);
}

/** Those that are http or https addresses, each once and without a final slash. A code may hold any text. */
export function httpUrls(urls: readonly string[]): readonly string[] {
  const known = urls.filter((url) => /^https?:$/u.test(protocolOf(url))).map((url) => url.replace(/\/+$/u, ''));
  return [...new Set(known)];
}

function protocolOf(url: string): string {
  try {
    return new URL(url).protocol;
  } catch {
    return '';
  }
}
