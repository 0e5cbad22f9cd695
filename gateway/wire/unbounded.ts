/** The values by which clients of other servers say that there is to be no bound. Pure. */
import * as z from 'zod';

/** -1 and 0 are every token, as vLLM and llama.cpp have it. */
export const topKSchema = z.int().min(-1);

export function topK(value: number | null | undefined): number | undefined {
  return value == null ? undefined : Math.max(0, value);
}

/** -1 is as many as there is room for; 0 is what forms send for a field that was left empty. */
export const tokenLimitSchema = z.int().min(-1);

/** @returns undefined where nothing was said */
export function tokenLimit(value: number | null | undefined): number | undefined {
  if (value == null || value === 0) return undefined;
  return value < 0 ? NO_TOKEN_LIMIT : value;
}

/** Goes before what the owner or the style lays down for requests that say nothing. */
export const NO_TOKEN_LIMIT = Number.MAX_SAFE_INTEGER;
