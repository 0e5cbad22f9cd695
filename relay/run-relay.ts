/** The relay as a program: its flags, the files that they name, its log, and its end. */
import { readFile } from 'node:fs/promises';
import { parseAdmission, type Admission } from './admission.ts';
import { parseLimits } from './limits.ts';
import type { RelayEvent } from './relay-context.ts';
import { startRelay, type Relay, type TlsFiles } from './relay-server.ts';
import { RELAY_CODE, wordsOf } from './wire/codes.ts';
import { isRelayOrigin } from './wire/registration.ts';

export const RELAY_FLAGS = {
  listen: { type: 'string' },
  origin: { type: 'string' },
  admit: { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  limit: { type: 'string', multiple: true },
  metrics: { type: 'string' },
} as const;

/** @param name what the program is called by */
export const relayUsage = (name: string): string => `Usage: ${name} --listen HOST:PORT [options]

Carries sealed bytes between devices and the gateways that let them in. It can read none of it, and keeps nothing.

  --listen HOST:PORT   where to listen
  --origin URL         what gateways know this relay by, such as wss://relay.example.com; they sign for it.
                       By default what is listened on. Needed where that is every address, or a proxy stands in front
  --admit FILE         who may register: a gateway's relay key or routing id in each line; read again on SIGHUP.
                       Without it, anybody may
  --tls-cert FILE      certificate and key (PEM); read again on SIGHUP. Without them it speaks plain WebSocket, for a
  --tls-key FILE       proxy that has the certificate
  --limit NAME=VALUE   changes a limit; may be given again. A wrong name shows them all
  --metrics HOST:PORT  where /metrics is answered, and nothing else; without it, nowhere

/healthz says that it runs. SIGTERM ends it: it takes nobody new, tells everybody, and gives running streams 30 s.

Example:
  ${name} --listen 0.0.0.0:443 --origin wss://relay.example.com --admit admitted.txt \\
    --tls-cert fullchain.pem --tls-key privkey.pem
`;

/** The operator's mistake; said in one line. */
export class RelayUsageError extends Error {
  override readonly name = 'RelayUsageError';
}

/** Something that the operator can put right; said in one line. */
export class RelayStartError extends Error {
  override readonly name = 'RelayStartError';
}

export interface RelayProgram {
  readonly flags: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
  /** Words, one line each: stderr. */
  readonly say: (line: string) => void;
  /** Data, one line: stdout. */
  readonly print: (line: string) => void;
  readonly stop: AbortSignal;
  readonly stopNow: AbortSignal;
}

interface RelayFiles {
  readonly admit: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
}

/** Runs until `stop` fires. @throws RelayUsageError, RelayStartError */
export async function runRelay(program: RelayProgram): Promise<void> {
  const { flags, say, print, stop } = program;
  const { host, port } = parseListen(textOf(flags['listen']));
  const [origin, metrics] = [textOf(flags['origin']), textOf(flags['metrics'])];
  checkOrigin(origin, host);
  const limits = parseLimits(listOf(flags['limit']));
  if (typeof limits === 'string') throw new RelayUsageError(limits);
  const files = { admit: textOf(flags['admit']), cert: textOf(flags['tls-cert']), key: textOf(flags['tls-key']) };
  const [tls, admission] = [await readTls(files), await readAdmission(files.admit)];
  const relay = await startRelay({
    host,
    port,
    origin,
    tls,
    limits,
    metrics: metrics === undefined ? undefined : parseListen(metrics, '--metrics 127.0.0.1:9464'),
    log: (event) => say(formatEvent(event)),
    ...(admission === undefined ? {} : { admission }),
  }).catch((error: unknown) => {
    const also = metrics === undefined ? '' : ` or ${metrics}`;
    throw new RelayStartError(`can't listen on ${host}:${port}${also}, or the certificate is none (${codeOf(error)}).`);
  });
  const readAgain = (): void => void readFilesAgain(relay, files, say);
  process.on('SIGHUP', readAgain);
  if (admission === undefined) say('anybody may register a gateway here; --admit limits that');
  print(JSON.stringify({ origin: relay.origin, port: relay.port, metricsPort: relay.metricsPort }));
  await new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    stop.addEventListener('abort', () => resolve(), { once: true });
  });
  say('takes nobody new, and waits for running streams');
  await relay.drain(program.stopNow);
  process.off('SIGHUP', readAgain);
}

async function readFilesAgain(relay: Relay, files: RelayFiles, say: (line: string) => void): Promise<void> {
  try {
    const [tls, admission] = [await readTls(files), await readAdmission(files.admit)];
    if (tls !== undefined) relay.setTls(tls);
    if (admission !== undefined) relay.setAdmission(admission);
    say('read the files again');
  } catch (error) {
    say(
      `nothing was changed: ${error instanceof RelayStartError ? error.message : `the certificate (${codeOf(error)})`}`,
    );
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((one): one is string => typeof one === 'string') : [];
}

function parseListen(text: string | undefined, example = '--listen 127.0.0.1:8443'): { host: string; port: number } {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]]+):([0-9]{1,5})$/iu.exec(text ?? '');
  const port = Number(match?.[2] ?? 65_536);
  if (match?.[1] === undefined || port > 65_535) throw new RelayUsageError(`say where to listen: ${example}`);
  return { host: match[1].replaceAll(/[[\]]/gu, '').toLowerCase(), port };
}

function checkOrigin(origin: string | undefined, host: string): void {
  if (origin === undefined && ['0.0.0.0', '::'].includes(host))
    throw new RelayUsageError('say what gateways know this relay by: --origin wss://relay.example.com');
  if (origin !== undefined && !isRelayOrigin(origin))
    throw new RelayUsageError(
      'an origin is such as wss://relay.example.com or wss://relay.example.com:8443, in lower case, without a path or the usual port.',
    );
}

async function readTls(files: RelayFiles): Promise<TlsFiles | undefined> {
  if (files.cert === undefined && files.key === undefined) return undefined;
  if (files.cert === undefined || files.key === undefined)
    throw new RelayUsageError('--tls-cert and --tls-key belong together.');
  const [cert, key] = await Promise.all([readText(files.cert), readText(files.key)]);
  return { cert, key };
}

async function readAdmission(path: string | undefined): Promise<Admission | undefined> {
  if (path === undefined) return undefined;
  const admission = parseAdmission(await readText(path));
  if (typeof admission === 'string') throw new RelayStartError(`${path}: ${admission}`);
  return admission;
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new RelayStartError(`can't read ${path} (${codeOf(error)}).`);
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'it is not what it should be';
}

/** `gateway gone k7q2: 11 nothing came in time, 1200 B in, 900 B out` */
/** A connection that its other end has closed ends with the code that the streams over it are told. */
function reasonOf(event: RelayEvent['event'], code: number): string {
  const isClosedThere = code === RELAY_CODE.offline && (event === 'client gone' || event === 'gateway gone');
  return isClosedThere ? 'disconnected' : `${code} ${wordsOf(code)}`;
}

function formatEvent({ event, route, code, bytesIn, bytesOut, error }: RelayEvent): string {
  const about = [
    ...(code === undefined ? [] : [reasonOf(event, code)]),
    ...(bytesIn === undefined ? [] : [`${bytesIn} B in`, `${bytesOut ?? 0} B out`]),
    ...(error instanceof Error ? [`${error.name} ${error.stack?.split('\n')[1]?.trim() ?? ''}`] : []),
  ];
  return `${event}${route === undefined ? '' : ` ${route}`}${about.length === 0 ? '' : `: ${about.join(', ')}`}`;
}
