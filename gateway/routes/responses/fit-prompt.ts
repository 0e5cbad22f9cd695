/** A conversation that is longer than the model's context window, without its beginning. */
import { ServiceError } from '../../../core/errors.ts';
import type { ModelCall } from '../../../core/inference/model-port.ts';
import { inTurns } from '../../../core/steps.ts';
import type { Services } from '../../route.ts';
import type { ResponsesRequest } from '../../wire/responses/request.ts';

interface FitContext {
  /** As the catalog calls it. */
  readonly modelId: string;
  readonly inference: Pick<Services['inference'], 'countPromptTokens' | 'status'>;
  readonly signal: AbortSignal;
}

export interface FittingCall {
  readonly call: ModelCall;
  /** Tells the client how many items the model was not given; nothing where it was given all. */
  readonly dropped: readonly string[];
}

/**
 * Leaves out as few of the oldest items as will do. The model counts, since nobody else can: for a conversation of a
 * thousand items ten times.
 * @throws {ServiceError} `prompt_too_long` where even the shortest does not fit
 */
export async function fitPrompt(request: ResponsesRequest, context: FitContext): Promise<FittingCall> {
  if (await fits(request, request.call, context)) return { call: request.call, dropped: [] };
  let shortest = await inTurns(request.shorten(Infinity));
  await count(request, shortest.call, context);
  let [tooFew, enough] = [0, shortest.dropped];
  while (enough - tooFew > 1) {
    const middle = tooFew + Math.floor((enough - tooFew) / 2);
    const candidate = await inTurns(request.shorten(middle));
    if (await fits(request, candidate.call, context)) [shortest, enough] = [candidate, middle];
    else tooFew = middle;
  }
  return { call: shortest.call, dropped: [`truncation.${shortest.dropped}_items`] };
}

/** Of the context window, for the answer, where the request does not say. */
const SHARE_OF_ANSWER = 1 / 4;

async function fits(request: ResponsesRequest, call: ModelCall, context: FitContext): Promise<boolean> {
  try {
    const tokens = await count(request, call, context);
    // Loaded just now, unless its place was taken since.
    const resident = context.inference.status().residents.find(({ id }) => id === context.modelId);
    if (resident === undefined) return true;
    const most = Math.floor(resident.contextTokens * SHARE_OF_ANSWER);
    return tokens + Math.min(call.maxOutputTokens ?? most, most) <= resident.contextTokens;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'prompt_too_long') return false;
    throw error;
  }
}

function count({ model }: ResponsesRequest, call: ModelCall, { inference, signal }: FitContext): Promise<number> {
  return inference.countPromptTokens(model, { ...call, abortSignal: signal });
}
