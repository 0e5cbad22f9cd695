/** `GET /` and `GET /health`. Everything in here is at hand when asked for, so that neither can ever hang. */
import { readdir } from 'node:fs/promises';
import { reasonOf } from '../../storage/disk-fault.ts';
import { availableMemoryBytes } from '../../core/system-memory.ts';
import { NO_BODY_BYTES } from '../bounds.ts';
import { encodeRelay } from '../relays.ts';
import type { Route, Services } from '../route.ts';

/** How long the parts of the snapshot that ask the system may take, in milliseconds. */
const SNAPSHOT_DEADLINE_MS = 250;

export const root: Route<unknown> = {
  method: 'GET',
  path: '/',
  access: 'public',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
  summary: 'One line of text: the service is there.',
  handle: () => ({ body: 'Postern is running.\n' }),
};

type Needs = Pick<Services, 'storage' | 'control' | 'inference' | 'relays' | 'now'>;

export const health: Route<Needs> = {
  method: 'GET',
  path: '/health',
  access: 'health',
  isPolled: true,
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
  summary: 'A snapshot of the service.',
  async handle({ view }, services) {
    const timestamp = new Date(services.now()).toISOString();
    if (view === 'summary') return { body: { status: 'healthy', timestamp } };
    const reasons = troubles(services);
    const status = reasons.length === 0 ? 'healthy' : 'degraded';
    return { body: { status, timestamp, degraded: reasons, ...(await snapshot(services)) } };
  },
};

/** What does not work as it should; strangers are told that the service is there, and no more. */
function troubles({ storage, control }: Needs): readonly object[] {
  const trouble = storage.trouble();
  const channelFailedAtMs = control.channelFailedAtMs();
  return [
    ...(trouble === undefined ? [] : [degraded(reasonOf(trouble.fault), trouble.sinceMs)]),
    ...(channelFailedAtMs === undefined ? [] : [degraded('channel_crypto', channelFailedAtMs)]),
  ];
}

function degraded(reason: string, sinceMs: number): object {
  return { reason, since: new Date(sinceMs).toISOString() };
}

/** Parts of the service that do not exist yet say false, 0 or nothing. */
async function snapshot({ inference, control, relays }: Needs): Promise<object> {
  const { residents, inflight, maxCalls } = inference.status();
  const connections = control.connections();
  return {
    version: control.version,
    loaded: residents.map(({ id }) => id),
    current_model: residents[0]?.id ?? '',
    inflight: Object.fromEntries(inflight),
    resident_models: residents.map(({ id, contextTokens, sequences, memoryBytes }) => ({
      id,
      context_tokens: contextTokens,
      sequences,
      memory_bytes: memoryBytes,
    })),
    available_memory_bytes: await availableMemoryBytes(),
    memory_enabled: false,
    memory_database_open: false,
    chat_active: inflight.size > 0,
    http_inflight: connections.requests,
    http_inference_limit: maxCalls,
    open_file_descriptors: await openFileDescriptors(),
    open_connections: connections.sockets,
    relays: relays.list().map(encodeRelay),
    distillation: { queued: 0, active: 0 },
    batch_diagnostics: null,
    batch_diagnostics_timeout: false,
  };
}

/** Linux and macOS list a process's descriptors in a folder; elsewhere, or when that takes too long, the answer is 0. */
async function openFileDescriptors(): Promise<number> {
  const folder = process.platform === 'linux' ? '/proc/self/fd' : '/dev/fd';
  const deadline = new Promise<number>((resolve) => setTimeout(resolve, SNAPSHOT_DEADLINE_MS, 0).unref());
  // The listing itself holds one descriptor open.
  const count = readdir(folder).then(
    (names) => names.length - 1,
    () => 0,
  );
  return Promise.race([count, deadline]);
}
