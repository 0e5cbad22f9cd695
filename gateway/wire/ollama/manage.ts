/** What Ollama's `POST /api/copy` and `DELETE /api/delete` ask for. Pure. */
import * as z from 'zod';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';

export const ollamaCopySchema = z.looseObject({ source: z.string().min(1), destination: z.string().min(1) });

export const ollamaDeleteSchema = z.looseObject({
  model: z.string().optional(),
  name: z.string().optional().describe('The old name of `model`.'),
});

/** @returns the name of a model. @throws {RequestError} `bad_request` */
export function parseDeleteRequest(json: unknown): string {
  const { model, name } = parseBody(ollamaDeleteSchema, json);
  const wanted = model || name;
  if (wanted) return wanted;
  throw new RequestError('bad_request', "model: expected the model's name", { param: 'model' });
}

interface CopyRequest {
  readonly source: string;
  /** Without the tag that every name has. */
  readonly destination: string;
}

/** @throws {RequestError} `bad_request` */
export function parseCopyRequest(json: unknown): CopyRequest {
  const { source, destination } = parseBody(ollamaCopySchema, json);
  return { source, destination: destination.replace(/:latest$/, '') };
}
