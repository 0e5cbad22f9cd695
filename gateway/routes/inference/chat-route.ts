/**
 * The way of every request that asks a model, whatever its style: read it, find the model, have it answer, tell the
 * answer whole or as a stream. What differs is how a style reads and tells.
 */
import type { Inference } from '../../../core/inference/inference.ts';
import type {
  LanguageModel,
  ModelAnswer,
  ModelCall,
  ModelStreamPart,
  ModelWarnings,
} from '../../../core/inference/model-port.ts';
import type { GatewayRequest, Reply, Route } from '../../route.ts';
import { assertWhole } from '../../wire/answer-stream.ts';
import { withWarnings } from '../../wire/ignored.ts';
import type { Dialect } from '../../wire/dialect.ts';
import { inferenceRoute } from '../route-classes.ts';

/** A request as its style has read it. The codec is asked for when the model has begun with it, and not before. */
export type ModelRequest = {
  /** By a name that its client uses for it; or itself, where reading the request took it. */
  readonly model: string | LanguageModel;
  readonly call: ModelCall;
  readonly stream: boolean;
  /** Of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
} & ({ readonly answer: MakeCodec<AnswerCodec> } | { readonly timedAnswer: MakeCodec<TimedAnswerCodec> });

/** @param model by the name that the catalog has for it */
type MakeCodec<Codec> = (model: string) => Codec;

interface AnswerCodec {
  readonly whole: (answer: ModelAnswer) => object;
  /** Never throws; see `encodeStream`. */
  readonly stream: (parts: AsyncIterable<ModelStreamPart>) => AsyncIterable<string>;
}

/** Of a style that tells how long an answer's parts took: it has to see them come. */
interface TimedAnswerCodec extends Pick<AnswerCodec, 'stream'> {
  readonly whole: (parts: AsyncIterable<ModelStreamPart>) => Promise<object>;
}

interface ChatRouteOptions<Needs> {
  readonly dialect: Dialect;
  readonly path: string;
  readonly summary: string;
  readonly body: NonNullable<Route['body']>;
  /** @returns what to ask of which model, or a reply that needs none. @throws {RequestError} `bad_request` */
  readonly read: (request: GatewayRequest, services: Needs) => Promise<ModelRequest | Reply>;
}

/** What every one of these routes needs. */
export interface ModelSource {
  readonly inference: Pick<Inference, 'languageModel'>;
}

export function chatRoute<Needs>({ read, ...row }: ChatRouteOptions<Needs>): Route<Needs & ModelSource> {
  return inferenceRoute({
    ...row,
    method: 'POST',
    async handle(request: GatewayRequest, services: Needs & ModelSource): Promise<Reply> {
      const asked = await read(request, services);
      if ('body' in asked) return asked;
      const model = typeof asked.model === 'string' ? await services.inference.languageModel(asked.model) : asked.model;
      const { body, warnings } = await answerOf(asked, model, { ...asked.call, abortSignal: request.signal });
      const streamHeaders = asked.stream ? row.dialect.stream.headers : {};
      return { headers: { ...streamHeaders, ...withWarnings(asked.headers ?? {}, warnings) }, body };
    },
  });
}

interface Answered {
  readonly body: Reply['body'];
  readonly warnings?: ModelWarnings | undefined;
}

async function answerOf(asked: ModelRequest, model: LanguageModel, call: ModelCall): Promise<Answered> {
  if ('answer' in asked && !asked.stream) {
    const answer = await model.doGenerate(call);
    assertWhole(answer);
    return { body: asked.answer(model.modelId).whole(answer), warnings: answer.warnings };
  }
  const { stream, warnings } = await model.doStream(call);
  if ('answer' in asked) return { body: asked.answer(model.modelId).stream(stream), warnings };
  const codec = asked.timedAnswer(model.modelId);
  return { body: asked.stream ? codec.stream(stream) : await codec.whole(stream), warnings };
}
