/**
 * Ollama's published schemas, held more strictly than they are written: they require next to nothing and allow
 * anything else beside it. Here each body has the fields that its clients read, and no others but those named.
 */
import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { parse } from 'yaml';

interface ObjectSchema {
  properties: Record<string, unknown>;
  required?: string[];
  additionalProperties?: boolean;
}

interface Strictness {
  readonly required: readonly string[];
  /** What this service, or a newer Ollama, adds to the published schema. */
  readonly added?: readonly string[];
}

const counts = ['prompt_eval_count', 'eval_count'];
const durations = ['total_duration', 'load_duration', 'prompt_eval_duration', 'eval_duration'];
const line = ['model', 'created_at', 'done'];

const STRICTNESS: Readonly<Record<string, Strictness>> = {
  ChatResponse: { required: [...line, 'message', 'done_reason', ...counts, ...durations] },
  // The last event has what the whole answer has; only ChatResponse lists those fields.
  ChatStreamEvent: { required: [...line, 'message'] },
  GenerateResponse: { required: [...line, 'response', 'done_reason', ...counts, ...durations] },
  GenerateStreamEvent: { required: [...line, 'response'] },
  ToolCall: { required: ['function', 'id'], added: ['id'] },
  ListResponse: { required: ['models'] },
  ModelSummary: { required: ['name', 'model', 'modified_at', 'size', 'digest', 'details'] },
  PsResponse: { required: ['models'] },
  Ps: { required: ['name', 'model', 'size', 'digest', 'details', 'expires_at', 'context_length'] },
  ShowResponse: {
    required: ['parameters', 'license', 'modified_at', 'details', 'template', 'capabilities', 'model_info'],
    added: ['modelfile'],
  },
  VersionResponse: { required: ['version'], added: ['postern_version'] },
  ErrorResponse: { required: ['error'] },
};

const document = parse(readFileSync(new URL('../schemas/ollama.openapi.yaml', import.meta.url), 'utf8')) as {
  components: { schemas: Record<string, ObjectSchema> };
};
for (const [name, { required, added = [] }] of Object.entries(STRICTNESS)) {
  const schema = document.components.schemas[name]!;
  schema.required = [...required];
  schema.additionalProperties = false;
  for (const field of added) schema.properties[field] = {};
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ ...document, $id: 'ollama' });

/** @returns what is wrong with the value; an empty list where nothing is */
export function ollamaFaults(name: keyof typeof STRICTNESS, value: unknown): unknown[] {
  const validate = ajv.getSchema(`ollama#/components/schemas/${name}`) as ValidateFunction;
  return validate(value)
    ? []
    : (validate.errors ?? []).map(({ instancePath, message, params }) => [instancePath, message, params]);
}

/** The lines of a stream, each on its own. */
export function parseLines(text: string): Record<string, unknown>[] {
  return text
    .split('\n')
    .slice(0, -1)
    .map((one) => JSON.parse(one) as Record<string, unknown>);
}
