/** `/admin/pulls`: fetching models, for the command line. What is begun here goes on when its reader has left. */
import { pullKey, type JoinedPull } from '../../../core/download/pull-job.ts';
import { ownerOf } from '../../caller.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { tooManyPulls } from '../../pulls.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';
import { encodePull, encodePullBegun, encodePullEvent, pullRequestSchema } from '../../wire/admin/pulls.ts';
import { eventStream } from '../../wire/event-stream.ts';

export const listPulls = adminRoute({
  method: 'GET',
  path: '/admin/pulls',
  isPolled: true,
  summary: 'Where models are fetched from and to, and what is being or was fetched, the newest first.',
  handle({ caller }, { pulls }: Pick<Services, 'pulls'>) {
    const { modelsDir, hub, hasToken } = pulls.place();
    const list = pulls.jobs.list(ownerOf(caller)).flatMap(encodePull);
    return { body: { models_folder: modelsDir, hub, has_token: hasToken, pulls: list } };
  },
});

export const beginPull = adminRoute({
  method: 'POST',
  path: '/admin/pulls',
  summary:
    'Fetch a model, or follow what is being fetched already: server-sent events, pull.begun, pull.progress, pull.ended. It goes on without its reader, also after a restart.',
  body: pullRequestSchema,
  async handle({ caller, json, signal }, { pulls }: Pick<Services, 'pulls'>) {
    const { model, sha256 } = parseBody(pullRequestSchema, json());
    const input = { reference: model, sha256 };
    const job = await pulls.jobs.join({ owner: ownerOf(caller), key: pullKey(input), input, isKept: true, signal });
    if (job === undefined) throw tooManyPulls();
    return { headers: eventStream.headers, body: eventsOf(job), cut: job.cut };
  },
});

async function* eventsOf({ id, events }: JoinedPull): AsyncGenerator<string> {
  yield encodePullBegun(id);
  for await (const event of events) yield encodePullEvent(event);
}

export const stopPull = adminRoute({
  method: 'DELETE',
  path: '/admin/pulls/:id',
  summary:
    'Stop fetching a model, unless somebody else waits for it; what was fetched is kept, and gone on with later.',
  async handle({ caller, params }, { pulls }: Pick<Services, 'pulls'>) {
    const id = params['id'] ?? '';
    const state = await pulls.jobs.release(ownerOf(caller), id);
    if (state === undefined) throw new RequestError('not_found', 'Nothing with this id is being fetched.');
    return { body: { id, stopped: state === 'ended' } };
  },
});
