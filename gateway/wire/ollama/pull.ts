/** Ollama's `POST /api/pull`: what it asks for, and the lines that it is answered with. Pure. */
import * as z from 'zod';
import type { PullProgress } from '../../../core/download/pull-job.ts';
import type { JobFailure } from '../../../storage/jobs.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';

/** Ollama has more fields, for registries of its own: they say nothing here. */
export const ollamaPullRequestSchema = z.looseObject({
  model: z.string().optional().describe('`hf.co/org/repository:quantization`, an https URL, or an installed model.'),
  name: z.string().optional().describe('The old name of `model`.'),
  stream: z.boolean().optional(),
});

interface PullRequest {
  readonly model: string;
  readonly isStream: boolean;
}

/** @throws {RequestError} */
export function parsePullRequest(json: unknown): PullRequest {
  const { model, name, stream } = parseBody(ollamaPullRequestSchema, json);
  const asked = (model || name || '').trim();
  if (asked === '') throw new RequestError('bad_request', 'invalid model name', { param: 'model' });
  return { model: asked, isStream: stream !== false };
}

/** What is to be fetched, as `parseModelReference` reads it; undefined for a name of Ollama's own library. */
export function referenceOf(model: string): string | undefined {
  if (/^(hf:|https?:\/\/)/i.test(model)) return model;
  const [, name] = /^(?:hf\.co|huggingface\.co)\/(.+)$/i.exec(model) ?? [];
  return name === undefined ? undefined : `hf:${name.replace(/:latest$/, '')}`;
}

const STATUSES = {
  plan: 'pulling manifest',
  verify: 'verifying sha256 digest',
  finish: 'writing manifest',
} as const;

/** The first line of every pull, and all that there is to say of a model that is there, but for the last. */
export const PULLING_MANIFEST = { status: STATUSES.plan } as const;
export const PULLED = { status: 'success' } as const;

/** As Ollama does, it leaves out what is zero. */
export function encodePullProgress(progress: PullProgress): object {
  if (progress.step !== 'file') return { status: STATUSES[progress.step] };
  const { sha256, index, fileBytes, doneBytes } = progress;
  return {
    status: `pulling ${sha256 === undefined ? `file ${index + 1}` : sha256.slice(0, 12)}`,
    ...(sha256 === undefined ? {} : { digest: `sha256:${sha256}` }),
    total: fileBytes,
    ...(doneBytes === 0 ? {} : { completed: doneBytes }),
  };
}

/** Clients tell by Ollama's own words what went wrong. */
const WORDS: Readonly<Partial<Record<string, string>>> = {
  not_found: 'pull model manifest: file does not exist: ',
  bad_reference: 'pull model manifest: ',
  forbidden: 'pull model manifest: ',
  unreachable: 'pull model manifest: ',
  wrong_content: 'digest mismatch, file must be downloaded again: ',
};

export function encodePullFailure({ code, message }: JobFailure): { readonly error: string } {
  return { error: `${WORDS[code] ?? ''}${message}` };
}
