/**
 * `POST /api/pull`: fetches a model, as Ollama does. It stops when the last of those who wait for it has left; what was
 * fetched is kept, and the next pull goes on from there. It writes to the owner's disk, so it is theirs alone.
 */
import { pullKey, type PullEvent } from '../../../core/download/pull-job.ts';
import type { ModelCatalog } from '../../../core/inference/catalog.ts';
import { NO_BODY_BYTES } from '../../bounds.ts';
import { ownerOf } from '../../caller.ts';
import { tooManyPulls } from '../../pulls.ts';
import type { Reply, Route, Services } from '../../route.ts';
import { encodeLine, ndjson } from '../../wire/ndjson.ts';
import {
  encodePullFailure,
  encodePullProgress,
  ollamaPullRequestSchema,
  parsePullRequest,
  PULLED,
  PULLING_MANIFEST,
  referenceOf,
} from '../../wire/ollama/pull.ts';

export const ollamaPull: Route<Pick<Services, 'pulls' | 'catalog'>> = {
  method: 'POST',
  path: '/pull',
  access: 'admin',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '/api',
  summary: 'Fetch a model, in Ollama style. For the owner alone.',
  body: ollamaPullRequestSchema,
  async handle({ caller, json, signal }, { pulls, catalog }) {
    const { model, isStream } = parsePullRequest(json());
    const reference = referenceOf(model);
    if (reference === undefined) return answer(installed(model, catalog), isStream);
    const input = { reference };
    const job = await pulls.jobs.join({ owner: ownerOf(caller), key: pullKey(input), input, isKept: false, signal });
    if (job === undefined) throw tooManyPulls();
    return { ...(await answer(linesOf(job.events), isStream)), cut: job.cut };
  },
};

/** Nothing is fetched by such a name. What is there already is fetched, as far as its client cares. */
async function* installed(model: string, catalog: Pick<ModelCatalog, 'resolve'>): AsyncGenerator<object> {
  yield PULLING_MANIFEST;
  const isThere = await catalog.resolve(model).then(
    () => true,
    () => false,
  );
  yield isThere ? PULLED : encodePullFailure({ code: 'not_found', message: NOT_IN_A_LIBRARY });
}

const NOT_IN_A_LIBRARY =
  "Postern doesn't fetch from Ollama's library. Name a repository of the Hugging Face hub: hf.co/org/repository, or hf.co/org/repository:Q4_K_M.";

async function* linesOf(events: AsyncIterable<PullEvent>): AsyncGenerator<object> {
  for await (const event of events) {
    if (event.type === 'progress') yield encodePullProgress(event.progress);
    else return yield lastLine(event.end);
  }
  yield lastLine({ state: 'interrupted' });
}

function lastLine(end: Extract<PullEvent, { readonly type: 'ended' }>['end']): object {
  if (end.state === 'completed') return PULLED;
  const stopped = {
    code: end.state,
    message: 'This was stopped before it was done. The next pull goes on from there.',
  };
  return encodePullFailure(end.state === 'failed' ? end.failure : stopped);
}

/** A stream of lines, or the last of them alone. */
async function answer(lines: AsyncIterable<object>, isStream: boolean): Promise<Reply> {
  if (isStream) return { headers: ndjson.headers, body: encoded(lines) };
  let last: object = PULLING_MANIFEST;
  for await (const line of lines) last = line;
  return { status: 'error' in last ? 500 : 200, body: last };
}

async function* encoded(lines: AsyncIterable<object>): AsyncGenerator<string> {
  for await (const line of lines) yield encodeLine(line);
}
