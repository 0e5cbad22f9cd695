/**
 * OpenAI text completions, the request: `POST /v1/completions` into a raw call of the model port, which goes on with
 * the text as it stands. Pure.
 *
 * Unknown fields are let through; a known field that we can't honour is refused. What stands before the gap is all
 * that can be sent: a text that must also lead up to something (`suffix`) is another kind of model's work.
 */
import * as z from 'zod';
import { PROVIDER, type ModelCall } from '../../../core/inference/model-port.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import { defined } from '../defined.ts';
import { samplingCall, samplingFields } from './sampling.ts';
import { tokenLimit, tokenLimitSchema } from '../unbounded.ts';

/** OpenAI's reference gives this default: text that nothing told to stop would else run to the end of the context. */
const DEFAULT_MAX_TOKENS = 16;

export const completionRequestSchema = z.looseObject({
  model: z.string().min(1),
  prompt: z.union([z.string(), z.array(z.string())], {
    error: 'expected a text; prompts of token numbers cannot be used here',
  }),
  suffix: z.string().nullish(),
  middle: z.string().nullish(),
  max_tokens: tokenLimitSchema.nullish(),
  ...samplingFields,
  echo: z.boolean().nullish(),
  n: z.int().nullish(),
  best_of: z.int().nullish(),
  logprobs: z.int().nullish(),
  logit_bias: z.record(z.string(), z.number()).nullish(),
});
type CompletionBody = z.output<typeof completionRequestSchema>;

export interface CompletionRequest {
  readonly model: string;
  readonly call: ModelCall;
  readonly stream: boolean;
  readonly includeUsage: boolean;
  /** What the answer begins with: the prompt, for a client that asked for an echo. */
  readonly echo: string;
}

/**
 * @throws {RequestError} `bad_request` that names the field at fault
 * @throws {ServiceError} `unsupported` for a text with something after the gap
 */
export function parseCompletionRequest(json: unknown): CompletionRequest {
  const body = parseBody(completionRequestSchema, json);
  refuseUnavailable(body);
  const text = promptText(body);
  return {
    model: body.model,
    stream: body.stream ?? false,
    includeUsage: body.stream_options?.include_usage ?? false,
    echo: body.echo === true ? text : '',
    call: {
      prompt: [{ role: 'user', content: [{ type: 'text', text }] }],
      ...defined({
        maxOutputTokens: tokenLimit(body.max_tokens),
      }),
      ...samplingCall(body),
      providerOptions: {
        [PROVIDER]: {
          raw: true,
          styleDefaults: { maxTokens: DEFAULT_MAX_TOKENS },
          ...defined({ minP: body.min_p, repetitionPenalty: body.repetition_penalty }),
        },
      },
    },
  };
}

function promptText({ prompt }: CompletionBody): string {
  const [text, ...others] = typeof prompt === 'string' ? [prompt] : prompt;
  if (text === undefined || others.length > 0)
    refuse('prompt', 'exactly one text is continued per request; send several requests instead');
  if (text === '') refuse('prompt', 'there is no text to continue');
  return text;
}

function refuse(param: string, message: string): never {
  throw new RequestError('bad_request', `${param}: ${message}`, { param });
}

function refuseUnavailable(body: CompletionBody): void {
  for (const param of ['suffix', 'middle'] as const) {
    if (!body[param]) continue;
    const message = `${param}: a text can only be continued at its end; filling in the middle is not supported.`;
    throw new RequestError('unsupported', message, { param });
  }
  if ((body.n ?? 1) !== 1) refuse('n', 'only one choice can be made per request; send several requests instead');
  if ((body.best_of ?? 1) !== 1) refuse('best_of', 'only one choice can be made per request');
  if (body.logprobs != null) refuse('logprobs', 'token probabilities are not available');
  if (Object.keys(body.logit_bias ?? {}).length > 0) refuse('logit_bias', 'token biases are not available');
}
