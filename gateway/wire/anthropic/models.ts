/** Anthropic's list of models, page by page: https://platform.claude.com/docs/en/api/models/list */
import * as z from 'zod';
import type { Model } from '../../../core/inference/catalog.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';

const querySchema = z.object({
  limit: z.coerce.number().int().min(1).max(1000).default(20),
  after_id: z.string().optional(),
  before_id: z.string().optional(),
});

/** A model, and how long a conversation with it can get. */
type ListedModel = Model & { readonly contextTokens?: number | undefined };

/** @throws {RequestError} `bad_request` for a cursor that is none of this list */
export function encodeModelPage(models: readonly ListedModel[], query: URLSearchParams): object {
  const { limit, after_id: after, before_id: before } = parseBody(querySchema, Object.fromEntries(query));
  const end = before === undefined ? models.length : indexOf(models, before, 'before_id');
  const start = after === undefined ? 0 : indexOf(models, after, 'after_id') + 1;
  const between = models.slice(start, end);
  // Whoever goes backwards is given what comes right before.
  const page = before === undefined ? between.slice(0, limit) : between.slice(-limit);
  return {
    data: page.map(encodeModelInfo),
    has_more: page.length < between.length,
    first_id: page[0]?.id ?? null,
    last_id: page.at(-1)?.id ?? null,
  };
}

function indexOf(models: readonly Model[], id: string, param: string): number {
  const index = models.findIndex((model) => model.id === id);
  if (index === -1) throw new RequestError('bad_request', `${param}: no model of this list has this id`, { param });
  return index;
}

/** `null` is what nothing is known of. */
export function encodeModelInfo({ id, modifiedAtMs, contextTokens }: ListedModel): object {
  return {
    type: 'model',
    id,
    display_name: id,
    created_at: new Date(modifiedAtMs).toISOString(),
    lifecycle: 'active',
    deprecated_at: null,
    retires_at: null,
    line: null,
    max_input_tokens: contextTokens ?? null,
    max_tokens: contextTokens ?? null,
    capabilities: null,
  };
}
