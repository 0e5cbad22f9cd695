/**
 * Makes one entry of every request that is answered or that its client gives up, at the moment it ends and before the
 * last of the answer leaves: whoever has seen an answer finds it in the log.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { KEY_HEADERS } from '../credential.ts';
import { callerName, callOwnerOf, type Caller } from '../caller.ts';
import { outwardError, type ErrorCode } from '../errors.ts';
import type { Exchange } from '../pipeline/exchange.ts';
import type { AccessClass } from '../policy.ts';
import type { RequestBody } from '../request-body.ts';
import type { Reply, Route, Services } from '../route.ts';
import { withoutAlias } from '../path-alias.ts';
import { InferenceRecord } from './inference-record.ts';
import { redact, redactPath, singleLine } from './redaction.ts';
import { CLIENT_LEFT, type InferenceEntry, type RequestEntry } from './request-entry.ts';

/** What of a body is kept, in characters. */
const MAX_BODY_LENGTH = 4096;
/** What of it is looked at: a secret that is cut in two is no longer known for one. */
const MAX_LOOK_LENGTH = 4 * MAX_BODY_LENGTH;
const MAX_PATH_LENGTH = 256;
const MAX_USER_AGENT_LENGTH = 200;
/** What is no name could be anything, a prompt too. */
const MODEL_NAME = /^[\w.:@/+-]{1,100}$/;
const MAX_MESSAGE_LENGTH = 300;

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
   * @param isRoutine the owner's monitor asked how things are, or their command line administered, and was answered
   */
  readonly onEntry: (entry: RequestEntry, about: { readonly isRoutine: boolean }) => void;
}

export interface Recorder {
  /** The record of a request. It ends with the exchange, however that ends. */
  begin(exchange: Exchange): RequestRecord;
}

export function createRecorder(options: RecorderOptions): Recorder {
  return { begin: (exchange) => new RequestRecord(exchange, options) };
}

export class RequestRecord {
  readonly #exchange: Exchange;
  readonly #options: RecorderOptions;
  readonly #inference: InferenceRecord;
  readonly #startedAtMs: number;
  readonly #startedAt: number;
  #route: Route | undefined;
  #caller: Caller | undefined;
  #hasRunToken = false;
  #body: RequestBody | undefined;
  /** Of the answer, once there is one. */
  #status: number | undefined;
  #errorCode: ErrorCode | undefined;
  #errorMessage: string | undefined;
  #isOver = false;

  constructor(exchange: Exchange, options: RecorderOptions) {
    this.#exchange = exchange;
    this.#options = options;
    this.#startedAtMs = options.now();
    this.#startedAt = options.elapsed();
    this.#inference = new InferenceRecord({
      elapsed: options.elapsed,
      maxTextLength: options.keepBodies ? MAX_LOOK_LENGTH : 0,
      onFailure: (error) => {
        const { code, message } = outwardError(error);
        this.fail(code);
        this.#errorMessage = message;
      },
    });
    exchange.onClosed((isAnswered) => this.#end({ isCancelled: !isAnswered }));
  }

  /** @param route undefined for an address that there is not */
  aim(route: Route | undefined): void {
    this.#route = route;
  }

  /** @param options.hasRunToken it comes from the owner's command line, or from a page of ours */
  identify(caller: Caller, { hasRunToken = false }: { readonly hasRunToken?: boolean } = {}): void {
    this.#caller = caller;
    this.#hasRunToken = hasRunToken;
  }

  /** Notes the body that a handler is given. */
  keepBody(body: RequestBody): void {
    this.#body = body;
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

  /** The stream goes on unchanged, and with its last piece the request is over. Other answers are over in `answer`. */
  watch(status: number, pieces: Extract<Reply['body'], AsyncIterable<unknown>>): AsyncIterable<string | Uint8Array> {
    this.#status = status;
    return this.#watchStream(pieces);
  }

  /** @param text what is about to be sent whole */
  answer(status: number, text: string): void {
    this.#status = status;
    this.#end({ isCancelled: false, text });
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
    if (this.#exchange.method !== 'OPTIONS')
      this.#options.onEntry(this.#entry(ending), { isRoutine: this.#isRoutine() });
  }

  #entry({ isCancelled, text }: Ending): RequestEntry {
    const { method, headers, id, url, via } = this.#exchange;
    const secrets = credentials(headers);
    return {
      startedAtMs: this.#startedAtMs,
      durationMs: this.#options.elapsed() - this.#startedAt,
      source: via.kind === 'channel' ? 'sealed' : 'http',
      method,
      path: this.#path(pathOf(url), secrets),
      route: this.#route?.path,
      status: this.#status ?? CLIENT_LEFT,
      errorCode: this.#errorCode,
      caller: this.#callerName(),
      userAgent: shortLine(headers['user-agent'], secrets, MAX_USER_AGENT_LENGTH),
      requestId: id,
      errorMessage: shortLine(this.#errorMessage, secrets, MAX_MESSAGE_LENGTH),
      inference: this.#inferenceEntry(isCancelled, secrets),
      ...this.#bodies(text, secrets),
    };
  }

  #inferenceEntry(isCancelled: boolean, secrets: readonly string[]): InferenceEntry {
    // What fails because its client left does so after this.
    const isOver = isCancelled && this.#errorCode === undefined;
    const entry = this.#inference.entry({ startedAt: this.#startedAt, isCancelled: isOver });
    const { requestedModel = '' } = entry;
    return { ...entry, requestedModel: MODEL_NAME.test(requestedModel) ? redact(requestedModel, secrets) : undefined };
  }

  #isRoutine(): boolean {
    const isOwner = this.#caller?.scope === 'owner' && this.#caller.page === undefined;
    const isCommandLine = this.#hasRunToken && this.#route?.access === 'admin';
    return isOwner && (this.#route?.isPolled === true || isCommandLine) && (this.#status ?? CLIENT_LEFT) < 400;
  }

  #path(path: string, secrets: readonly string[]): string {
    // Our own words hold no secret.
    if (withoutAlias(path) === this.#route?.path) return path;
    return singleLine(redactPath(path, secrets), MAX_PATH_LENGTH);
  }

  #bodies(answer: string | undefined, secrets: readonly string[]): Pick<RequestEntry, 'requestBody' | 'responseBody'> {
    if (!this.#options.keepBodies || this.#route === undefined || !KEEPS_BODIES.has(this.#route.access)) {
      return { requestBody: undefined, responseBody: undefined };
    }
    return {
      requestBody: this.#body && bodyText(textOf(this.#body.head()), secrets),
      // Of a stream the model's own words: in the events they stand in fragments, and no secret could be seen in them.
      responseBody: bodyText(answer ?? this.#inference.text, secrets),
    };
  }
}

interface Ending {
  /** The client left before the answer was over. */
  readonly isCancelled: boolean;
  readonly text?: string;
}

/** What the request proves itself with, so that it can be known again wherever else it stands. */
function credentials(headers: IncomingHttpHeaders): readonly string[] {
  const { authorization, cookie } = headers;
  const keys = KEY_HEADERS.map((name) => headers[name]);
  return [authorization, authorization?.split(/\s+/)[1], cookie, ...keys, headers['x-postern-run-token']]
    .flat()
    .filter((secret) => secret !== undefined);
}

/** A request may name its target with scheme and host (RFC 9112 §3.2.2), and a password among them. */
function pathOf(url: string): string {
  return url.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?#]*/i, '').replace(/[?#].*$/s, '');
}

function shortLine(text: string | undefined, secrets: readonly string[], most: number): string | undefined {
  return text && singleLine(redact(text.slice(0, MAX_LOOK_LENGTH), secrets), most);
}

function textOf(body: Uint8Array): string {
  return new TextDecoder().decode(body.subarray(0, MAX_LOOK_LENGTH));
}

function bodyText(text: string, secrets: readonly string[]): string | undefined {
  return text === '' ? undefined : redact(text.slice(0, MAX_LOOK_LENGTH), secrets).slice(0, MAX_BODY_LENGTH);
}
