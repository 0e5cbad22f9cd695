/** One answered request, as it goes into the request log and the metrics. Nothing in it is a secret or a prompt. */

/** `chat` is our own chat page, `http` any client, `sealed` a call through the encrypted channel. */
export const REQUEST_SOURCES = ['chat', 'http', 'sealed'] as const;
export type RequestSource = (typeof REQUEST_SOURCES)[number];

/** How a model's answer ended. `cancelled`: the client left before it was over. */
export type RequestFinishReason = 'stop' | 'length' | 'tool_calls' | 'error' | 'cancelled';

/** The client left before there was any answer, a refusal included. HTTP has no word for it; this is nginx's. */
export const CLIENT_LEFT = 499;

export interface RequestEntry {
  /** When it came, in milliseconds since 1970. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly source: RequestSource;
  readonly method: string;
  /** As the client wrote it, without its query. */
  readonly path: string;
  /** The row of the route table, aliases taken off; undefined for an address that there is not. */
  readonly route: string | undefined;
  readonly status: number;
  readonly errorCode: string | undefined;
  /** What the client was told where a model refused: with the numbers of tokens, say. */
  readonly errorMessage: string | undefined;
  /** `loopback`, `anonymous`, or whom a credential stands for; undefined where a request ended before that was known. */
  readonly caller: string | undefined;
  readonly userAgent: string | undefined;
  readonly requestId: string;
  readonly inference: InferenceEntry;
  /** Only where the owner wants bodies kept. */
  readonly requestBody: string | undefined;
  readonly responseBody: string | undefined;
}

/** What models did for a request; all of it undefined where none was asked. Tokens as the engine counted them. */
export interface InferenceEntry {
  /** An installed model's id, never what a client made up. */
  readonly model: string | undefined;
  /** The name that the client asked for, whether or not a model answers to it. */
  readonly requestedModel: string | undefined;
  /** Undefined where no answer was asked of a model. */
  readonly finishReason: RequestFinishReason | undefined;
  readonly inputTokens: number | undefined;
  /** Those of the input that the engine still had from before. */
  readonly cachedTokens: number | undefined;
  readonly outputTokens: number | undefined;
  /** From the request's start to the first piece of an answer: loading, waiting in line and reading the prompt. */
  readonly firstTokenMs: number | undefined;
  /** From the first piece of an answer to its end. */
  readonly generationMs: number | undefined;
  /** Over that time. */
  readonly tokensPerSecond: number | undefined;
}
