/** The grammar for a schema that an answer, or a call's arguments, shall keep to; and what a client hears where it can't be. Pure. */
import type { SharedV4Warning } from '@ai-sdk/provider';
import { isRecord } from '../../../json.ts';
import { ANY_OBJECT, schemaGrammar, type SchemaGrammar } from '../../../json-schema/schema-grammar.ts';
import { ServiceError, type CallField } from '../../../errors.ts';
import { modelOptionsOf } from '../../model-port.ts';
import type { GenerateRequest } from './protocol.ts';

export type HeldSchema = Extract<SchemaGrammar, { isPossible: true }> & { readonly schema: unknown };

/**
 * @returns undefined where any text will do
 * @throws {ServiceError} `invalid_request` for a schema that is too large or that nothing fits, `unsupported` for one
 *   that is to be kept strictly and can't be
 */
export function responseSchema(request: GenerateRequest): HeldSchema | undefined {
  const { responseFormat: format } = request;
  if (format?.type !== 'json') return undefined;
  const isStrict = modelOptionsOf(request).strictResponseFormat === true;
  return heldSchema(format.schema ?? ANY_OBJECT, { field: 'responseFormat', isStrict });
}

interface Terms {
  readonly field: CallField;
  readonly isStrict: boolean;
}

function heldSchema(schema: unknown, { field, isStrict }: Terms): HeldSchema {
  const held = schemaGrammar(isRecord(schema) || typeof schema === 'boolean' ? schema : true);
  if (!held.isPossible) throw new ServiceError('invalid_request', REASONS[held.reason], { field });
  if (isStrict && held.gaps.length > 0) throw new ServiceError('unsupported', gapsMessage(held.gaps), { field });
  return { ...held, schema };
}

const REASONS = {
  'too-large': 'The JSON schema is too large, or its parts multiply to too many alternatives.',
  'nothing-fits': 'No value fits the JSON schema: its keywords contradict each other.',
} as const;

/** How many gaps a message names. */
const MAX_NAMED = 5;
const MAX_NAME_LENGTH = 100;

function gapsMessage(gaps: readonly string[]): string {
  const named = gaps.slice(0, MAX_NAMED).map((gap) => `"${gap.slice(-MAX_NAME_LENGTH)}"`);
  const others = gaps.length > MAX_NAMED ? ` and ${gaps.length - MAX_NAMED} more` : '';
  return `This model can't be held to ${named.join(', ')}${others} of the JSON schema. Leave that out, or don't ask for strict.`;
}

/** What of a schema isn't held to, as the model port says so. */
export function gapWarnings(held: HeldSchema | undefined): SharedV4Warning[] {
  return (held?.gaps ?? []).map((gap) => ({ type: 'unsupported', feature: `response_format.${gap}` }));
}
