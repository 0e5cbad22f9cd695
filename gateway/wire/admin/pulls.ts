/** A model that is being fetched, as its owner's programs see it. */
import * as z from 'zod';
import type { PullEvent, PullProgress } from '../../../core/download/pull-job.ts';
import type { JobRecord } from '../../../storage/job-table.ts';
import { encodeNamedEvent } from '../event-stream.ts';

export const pullRequestSchema = z.strictObject({
  model: z.string().min(1).max(2048).describe('`hf:org/repository`, with or without `:quantization`, or an https URL.'),
  sha256: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'expected 64 hexadecimal digits')
    .optional(),
});

/** `pull.begun` comes first, and once; `pull.ended` last, unless the service stops. */
export const pullEventSchema = z.discriminatedUnion('event', [
  z.object({ event: z.literal('pull.begun'), id: z.string() }),
  z.object({
    event: z.literal('pull.progress'),
    step: z.enum(['plan', 'file', 'verify', 'finish']),
    done_bytes: z.int().min(0).optional(),
    total_bytes: z.int().min(0).optional(),
  }),
  z.object({
    event: z.literal('pull.ended'),
    state: z.enum(['completed', 'failed', 'cancelled', 'interrupted']),
    is_new: z.boolean().optional(),
    error: z.object({ code: z.string(), message: z.string() }).optional(),
  }),
]);

export const pullListSchema = z.object({
  /** Where this service puts models, where it gets them, and whether it has a token for that. */
  models_folder: z.string(),
  hub: z.string().nullable(),
  has_token: z.boolean(),
  pulls: z.array(
    z.object({
      id: z.string(),
      model: z.string(),
      state: z.string(),
      done_bytes: z.int().min(0).optional(),
      total_bytes: z.int().min(0).optional(),
    }),
  ),
});

export function encodePullBegun(id: string): string {
  return encodeNamedEvent('pull.begun', { id });
}

export function encodePullEvent(event: PullEvent): string {
  if (event.type === 'progress') return encodeNamedEvent('pull.progress', encodeProgress(event.progress));
  const { end } = event;
  if (end.state === 'completed') return encodeNamedEvent('pull.ended', { state: end.state, is_new: end.result.isNew });
  return encodeNamedEvent('pull.ended', {
    state: end.state,
    ...(end.state === 'failed' ? { error: end.failure } : {}),
  });
}

function encodeProgress(progress: PullProgress): object {
  const { step } = progress;
  return progress.step === 'file'
    ? { step, done_bytes: progress.allDoneBytes, total_bytes: progress.allBytes }
    : { step };
}

/** Of what the table holds: an older version of the program may have written it. */
const storedSchema = z.object({
  input: z.object({ reference: z.string() }),
  progress: z
    .object({ allBytes: z.int().min(0), allDoneBytes: z.int().min(0) })
    .nullable()
    .catch(null),
});

export function encodePull({
  id,
  state,
  input,
  progress,
  ...job
}: JobRecord): z.output<typeof pullListSchema>['pulls'] {
  const stored = storedSchema.safeParse({ input, progress });
  if (!stored.success) return [];
  const { allBytes, allDoneBytes } = stored.data.progress ?? {};
  const bytes = allBytes === undefined ? {} : { done_bytes: allDoneBytes, total_bytes: allBytes };
  const begun = { begun_at: new Date(job.begunAtMs).toISOString() };
  return [{ id, model: stored.data.input.reference, state, ...bytes, ...begun }];
}
