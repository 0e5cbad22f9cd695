/** How long conversations can get with the models of the running service, which knows what it has loaded. */
import * as z from 'zod';
import { findLiveServer } from '../../live-server.ts';

const modelsSchema = z.object({
  data: z.array(z.object({ id: z.string(), context_window: z.number().optional() })),
});

/** By model id; empty where no service runs, or it does not say. */
export async function liveContextLimits(home: string): Promise<ReadonlyMap<string, number>> {
  const live = await findLiveServer(home).catch(() => undefined);
  const answer = await live?.askInference('models').catch(() => undefined);
  const { data } = modelsSchema.safeParse(answer).data ?? { data: [] };
  return new Map(data.flatMap(({ id, context_window: tokens }) => (tokens === undefined ? [] : [[id, tokens]])));
}
