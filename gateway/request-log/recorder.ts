/**
 * Makes one entry of every request that is answered or that its client gives up, at the moment it ends and before the
 * last of the answer leaves: whoever has seen an answer finds it in the log.
 */
import type { IncomingMessage } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { callerName, callOwnerOf, type Caller } from '../caller.ts';
import { outwardError, type ErrorCode } from '../errors.ts';
import type { AccessClass } from '../policy.ts';
import { RequestBody } from '../request-body.ts';
import type { Reply, Services } from '../route.ts';
import { whenClosed } from '../when-closed.ts';
import { InferenceRecord } from './inference-record.ts';
import { redact, redactPath, singleLine } from './redaction.ts';
import { CLIENT_LEFT, type RequestEntry, type RequestSource } from './request-entry.ts';

/** What of a body is kept, in characters. */
const MAX_BODY_LENGTH = 4096;
/** What of it is looked at: a secret that is cut in two is no longer known for one. */
const MAX_LOOK_LENGTH = 4 * MAX_BODY_LENGTH;
const MAX_PATH_LENGTH = 256;
const MAX_USER_AGENT_LENGTH = 200;

/** Bodies of pairing, of the encrypted channel and of administration are never kept: secrets are what they are for. */
const KEEPS_BODIES: ReadonlySet<AccessClass> = new Set<AccessClass>(['inference', 'tools', 'agents', 'dispatch']);

export interface RecorderOptions {
  /** Milliseconds since 1970. */
  readonly now: () => number;
  /** Milliseconds that never go back. */
  readonly elapsed: () => number;
  readonly keepBodies: boolean;
  /**
   * Called once for each request; must not throw.
   * @param isPoll the owner, or a program of theirs, asked how things are, and was told
   */
  readonly onEntry: (entry: RequestEntry, about: { readonly isPoll: boolean }) => void;
}

export interface Recorder {
  /** The record of a request, begun when it is first asked for. It ends with the response, however that ends. */
  of(request: FastifyRequest, reply: FastifyReply): RequestRecord;
}

export function createRecorder(options: RecorderOptions): Recorder {
  const records = new WeakMap<IncomingMessage, RequestRecord>();
  return {
    of(request, reply) {
      const record = records.get(request.raw) ?? new RequestRecord(request, reply, options);
      records.set(request.raw, record);
      return record;
    },
  };
}

export class RequestRecord {
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #options: RecorderOptions;
  readonly #inference: InferenceRecord;
  readonly #startedAtMs: number;
  readonly #startedAt: number;
  #source: RequestSource = 'http';
  #caller: Caller | undefined;
  #errorCode: ErrorCode | undefined;
  #isOver = false;

  constructor(request: FastifyRequest, reply: FastifyReply, options: RecorderOptions) {
    this.#request = request;
    this.#reply = reply;
    this.#options = options;
    this.#startedAtMs = options.now();
    this.#startedAt = options.elapsed();
    this.#inference = new InferenceRecord({
      elapsed: options.elapsed,
      maxTextLength: options.keepBodies ? MAX_LOOK_LENGTH : 0,
      onFailure: (error) => this.fail(outwardError(error).code),
    });
    const { raw } = reply;
    whenClosed(raw, () => this.#end({ isCancelled: !raw.writableFinished }));
  }

  identify({ caller, source }: { readonly caller: Caller; readonly source: RequestSource }): void {
    this.#caller = caller;
    this.#source = source;
  }

  /** Notes why the request fails, on its way out or in the middle of its stream. */
  fail(code: ErrorCode): void {
    this.#errorCode = code;
  }

  /** The services as this request uses them: in its caller's name, and looked on at. */
  watchServices(services: Services): Services {
    if (this.#caller === undefined) throw new TypeError('a request got this far without having been identified');
    return { ...services, inference: this.#inference.watch(services.inference, callOwnerOf(this.#caller)) };
  }

  /** Leaves the request out: what it carries has entries of its own. */
  forget(): void {
    this.#isOver = true;
  }

  /** A stream goes on unchanged, and with its last piece the request is over. Other replies are over in `answer`. */
  watchReply(reply: Reply): Reply {
    const { body } = reply;
    if (typeof body !== 'object' || !(Symbol.asyncIterator in body)) return reply;
    return { ...reply, body: this.#watchStream(body) };
  }

  /** @param payload what is about to be sent whole */
  answer(payload: unknown): void {
    this.#end({ isCancelled: false, payload });
  }

  async *#watchStream(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<string | Uint8Array> {
    yield* pieces;
    this.#end({ isCancelled: false });
  }

  #callerName(): string | undefined {
    return this.#caller && callerName(this.#caller);
  }

  #end(ending: Ending): void {
    if (this.#isOver) return;
    this.#isOver = true;
    if (this.#request.method !== 'OPTIONS') this.#options.onEntry(this.#entry(ending), { isPoll: this.#isPoll() });
  }

  #entry({ isCancelled, payload }: Ending): RequestEntry {
    const { method, headers, id, originalUrl } = this.#request;
    const secrets = credentials(headers);
    const isAnswered = !isCancelled || this.#reply.raw.headersSent;
    return {
      startedAtMs: this.#startedAtMs,
      durationMs: this.#options.elapsed() - this.#startedAt,
      source: this.#source,
      method,
      path: singleLine(redactPath(pathOf(originalUrl), secrets), MAX_PATH_LENGTH),
      route: this.#request.routeOptions.config.route?.path,
      status: isAnswered ? this.#reply.raw.statusCode : CLIENT_LEFT,
      errorCode: this.#errorCode,
      caller: this.#callerName(),
      userAgent: headers['user-agent'] && singleLine(redact(headers['user-agent'], secrets), MAX_USER_AGENT_LENGTH),
      requestId: id,
      inference: this.#inference.entry({
        startedAt: this.#startedAt,
        // What fails because its client left does so after this.
        isCancelled: isCancelled && this.#errorCode === undefined,
      }),
      ...this.#bodies(payload, secrets),
    };
  }

  #isPoll(): boolean {
    const isOwner = this.#caller?.scope === 'owner' && this.#caller.page === undefined;
    return isOwner && this.#request.routeOptions.config.route?.isPolled === true && this.#reply.raw.statusCode < 400;
  }

  #bodies(payload: unknown, secrets: readonly string[]): Pick<RequestEntry, 'requestBody' | 'responseBody'> {
    const access = this.#request.routeOptions.config.route?.access;
    if (!this.#options.keepBodies || access === undefined || !KEEPS_BODIES.has(access)) {
      return { requestBody: undefined, responseBody: undefined };
    }
    const { body } = this.#request;
    return {
      requestBody: body instanceof RequestBody ? bodyText(textOf(body.head()), secrets) : undefined,
      // Of a stream the model's own words: in the events they stand in fragments, and no secret could be seen in them.
      responseBody: bodyText(typeof payload === 'string' ? payload : this.#inference.text, secrets),
    };
  }
}

interface Ending {
  /** The client left before the answer was over. */
  readonly isCancelled: boolean;
  readonly payload?: unknown;
}

/** What the request proves itself with, so that it can be known again wherever else it stands. */
function credentials(headers: FastifyRequest['headers']): readonly string[] {
  const { authorization, cookie } = headers;
  return [authorization, authorization?.split(/\s+/)[1], cookie, headers['x-api-key'], headers['x-postern-run-token']]
    .flat()
    .filter((secret) => secret !== undefined);
}

/** A request may name its target with scheme and host (RFC 9112 §3.2.2), and a password among them. */
function pathOf(url: string): string {
  return url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
}

function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body.subarray(0, MAX_LOOK_LENGTH));
}

function bodyText(text: string, secrets: readonly string[]): string | undefined {
  return text === '' ? undefined : redact(text.slice(0, MAX_LOOK_LENGTH), secrets).slice(0, MAX_BODY_LENGTH);
}
