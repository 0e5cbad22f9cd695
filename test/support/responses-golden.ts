/** What the tests of the Open Responses codec have in common: fixed ids and times. */
import { ServiceError } from '../../core/errors.ts';
import type { ModelStreamPart } from '../../core/inference/model-port.ts';
import { atOnce } from '../../core/steps.ts';
import { parseKeptItems } from '../../gateway/wire/responses/input.ts';
import {
  parseResponsesBody,
  parseResponsesRequest,
  type ResponsesRequest,
} from '../../gateway/wire/responses/request.ts';
import type { ResponseEnvelope } from '../../gateway/wire/responses/resource.ts';

export const KEY = '0123456789abcdef01234567';
export const CREATED_AT = 1_700_000_000;
export const COMPLETED_AT = 1_700_000_002;

interface Stored {
  /** Items of the conversation that the request goes on with. */
  readonly earlier?: unknown;
  /** Items of other stored responses. */
  readonly others?: unknown;
}

export function parseRequest(json: unknown, { earlier = [], others = [] }: Stored = {}): ResponsesRequest {
  const stored = parseKeptItems(others);
  return atOnce(
    parseResponsesRequest(atOnce(parseResponsesBody(json)), {
      key: KEY,
      conversation: parseKeptItems(earlier),
      findItem: (id) => stored.find((item) => item.id === id),
    }),
  );
}

export function envelopeOf(json: unknown): ResponseEnvelope {
  const request = atOnce(parseResponsesBody(json));
  const { tools, input, model } = parseRequest(json);
  return { key: KEY, inputItems: input.length, createdAt: CREATED_AT, model, request, tools };
}

/** Parts as they stand in a file, where a failure is its code. */
export function filedParts(parts: readonly ModelStreamPart[]): ModelStreamPart[] {
  return parts.map((part) =>
    part.type === 'error' ? { type: 'error', error: new ServiceError('engine_failed', 'The model broke down.') } : part,
  );
}
