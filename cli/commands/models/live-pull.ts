/** Has the running service fetch a model, and follows that: it goes on when this terminal closes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { DOWNLOAD_ERROR_CODES, DownloadError } from '../../../core/download/download-error.ts';
import type { HubAccess } from '../../../core/download/hub-environment.ts';
import { pullEventSchema, pullListSchema } from '../../../gateway/wire/admin/pulls.ts';
import { CommandError } from '../../command.ts';
import { findLiveServer, type LiveServer } from '../../live-server.ts';

interface Here {
  readonly access: HubAccess;
  readonly folder: string;
}

/** @returns undefined unless it would fetch the same to the same place: it has an environment of its own */
export async function findPullingServer(home: string, { access, folder }: Here): Promise<LiveServer | undefined> {
  const server = await findLiveServer(home);
  const answer = await server?.ask('GET', 'pulls').catch(() => undefined);
  const there = pullListSchema.safeParse(answer);
  if (!there.success) return undefined;
  const { models_folder, hub, has_token } = there.data;
  const isSame = models_folder === folder && hub === access.endpoint.href && (has_token || !access.hasToken);
  return isSame ? server : undefined;
}

interface LivePull {
  readonly model: string;
  readonly sha256: string | undefined;
  /** Fires when the user asks to stop: then it is stopped there, too, unless somebody else waits for it. */
  readonly signal: AbortSignal;
  readonly onProgress: (doneBytes: number) => void;
}

/**
 * @returns false when all of it was there already
 * @throws {DownloadError} as where it is fetched here
 */
export async function pullThrough(server: LiveServer, pull: LivePull): Promise<boolean> {
  const { model, sha256, signal, onProgress } = pull;
  let id: string | undefined;
  try {
    for await (const { name, data } of server.events('pulls', signal, { model, sha256 })) {
      const event = pullEventSchema.parse({ event: name, ...Object(data) });
      if (event.event === 'pull.begun') id = event.id;
      else if (event.event === 'pull.ended') return resultOf(event);
      else if (event.done_bytes !== undefined) onProgress(event.done_bytes);
    }
  } catch (error) {
    if (!signal.aborted) throw error instanceof TypeError ? lostService(error) : error;
    if (id !== undefined) await stopThere(server, id);
    throw new DownloadError('stopped', 'Stopped.');
  }
  throw lostService();
}

/** It may hear of this before it hears that the stream was left, and takes that for somebody else's then. */
const STOP_ATTEMPTS = 20;
const STOP_PAUSE_MS = 50;

async function stopThere(server: LiveServer, id: string): Promise<void> {
  for (let attempt = 0; attempt < STOP_ATTEMPTS; attempt += 1) {
    const answer = await server.ask('DELETE', `pulls/${id}`, { timeoutMs: undefined }).catch(() => undefined);
    if (answer?.['stopped'] !== false) return;
    await sleep(STOP_PAUSE_MS);
  }
}

type Ended = Extract<ReturnType<typeof pullEventSchema.parse>, { readonly event: 'pull.ended' }>;

function resultOf({ state, is_new, error }: Ended): boolean {
  if (state === 'completed') return is_new === true;
  if (state !== 'failed') throw new DownloadError('stopped', 'Stopped.');
  const message = error?.message ?? 'The service could not fetch it.';
  const code = DOWNLOAD_ERROR_CODES.find((known) => known === error?.code);
  throw code === undefined ? new CommandError(message) : new DownloadError(code, message);
}

function lostService(cause?: unknown): CommandError {
  return new CommandError(
    'the service ended before the model was there. It goes on when it starts again; the same command shows how far it is.',
    { cause },
  );
}
