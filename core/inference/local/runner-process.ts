/**
 * The parent's end of a model runner: starts the process, turns its messages into streams, and turns its death into
 * a failure of the calls in flight and of nothing else.
 */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { ServiceError } from '../../errors.ts';
import type { ModelAnswer, ModelStreamPart, ModelWarnings } from '../model-port.ts';
import { ContextTooShort } from './prompt-size.ts';
import { createOutbox, type Outbox } from './runner/outbox.ts';
import {
  decodeFromRunner,
  RUNNER_SAYS,
  type RunnerFailure,
  type FromRunner,
  type GenerateRequest,
  type LoadedModel,
  type LoadRequest,
  type ToRunner,
} from './runner/protocol.ts';

export interface Runner {
  readonly model: LoadedModel;
  readonly pid: number;
  isAlive(): boolean;
  /**
   * Begins a generation. Resolves when the runner accepted the request; the stream then carries everything up to
   * `finish`. Aborting stops the generation and ends the stream with the signal's reason.
   * @param onSettled called once, when the runner is free again, however the call ended
   * @throws {ServiceError} what the runner refuses, or `engine_failed` when it dies
   * @throws {ContextTooShort}
   */
  stream(request: GenerateRequest, options: StreamOptions): Promise<ReadableStream<ModelStreamPart>>;
  /** The same as one answer, for whoever wants no part of it before the last: it costs a third of a stream. */
  generate(request: GenerateRequest, options: CallOptions): Promise<ModelAnswer>;
  /** @throws {ServiceError} what the runner refuses, or `engine_failed` when it dies */
  countPromptTokens(request: GenerateRequest, signal?: AbortSignal): Promise<number>;
  /** Kills the process; resolves when its memory is back with the system. @param reason what its calls fail with */
  stop(reason?: Error): Promise<void>;
}

interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onSettled: () => void;
}

interface StreamOptions extends CallOptions {
  /** Called with those of the first part, before the stream is there. */
  readonly onWarnings?: ((warnings: ModelWarnings) => void) | undefined;
}

interface StartOptions {
  /** The compiled `runner/main.js`. */
  readonly entry: URL;
  readonly load: LoadRequest;
  /** Called when the process ends without having been told to, with the signal or the exit code. */
  readonly onExit: (how: string) => void;
  readonly abortTimeoutMs?: number;
  /** Ends the start, wherever it is, with the signal's reason. */
  readonly signal?: AbortSignal;
}

/**
 * The engine looks up from its work once a token, but not while it reads a prompt, which can take minutes. Starting
 * another runner is sooner done than waiting for an answer that nobody wants any more.
 */
const ABORT_TIMEOUT_MS = 5000;

/**
 * @throws {ServiceError} `insufficient_resources` or `engine_failed`, when the model can't be loaded
 * @throws the signal's reason
 */
export async function startRunner(options: StartOptions): Promise<Runner> {
  const { entry, load, signal } = options;
  signal?.throwIfAborted();
  const child = fork(entry, {
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    env: runnerEnvironment(process.env),
  });
  if (child.stderr !== null) passOn(child.stderr);
  const runner = new RunnerProcess(child, options);
  const giveUp = (): void => void runner.stop();
  signal?.addEventListener('abort', giveUp, { once: true });
  try {
    return await runner.load(load);
  } catch (error) {
    await runner.stop();
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
}

/** How the engine, and Node, say why they end: with the place, and none of what they were given. */
const LAST_WORDS = /GGML_ASSERT|^terminate called|^FATAL ERROR/;
const MAX_LINE_LENGTH = 500;

/** The engine prints grammars, schemas and paths on its standard error, whatever its log level. */
function passOn(stderr: Readable): void {
  createInterface({ input: stderr }).on('line', (line) => {
    if (line.startsWith(RUNNER_SAYS) || LAST_WORDS.test(line)) {
      process.stderr.write(`${line.slice(0, MAX_LINE_LENGTH)}\n`);
    }
  });
}

/** A runner parses files that came from anywhere; what our own variables say is not for it to know. */
function runnerEnvironment(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith('SVC_')));
}

interface Handlers extends CallOptions {
  readonly whole: boolean;
  readonly onPart?: (part: ModelStreamPart) => void;
  readonly onAnswer?: (answer: ModelAnswer) => void;
  readonly onFailure: (error: unknown) => void;
}

interface Call {
  onPart?(part: ModelStreamPart): void;
  onAnswer?(answer: ModelAnswer): void;
  onCounted?(promptTokens: number): void;
  onFailure(error: Error): void;
}

class RunnerProcess {
  readonly #child: ChildProcess;
  readonly #outbox: Outbox<ToRunner>;
  readonly #calls = new Map<number, Call>();
  readonly #loaded = Promise.withResolvers<LoadedModel>();
  readonly #onExit: (how: string) => void;
  readonly #abortTimeoutMs: number;
  #lastId = 0;
  #isStopping = false;
  #stopReason: Error | undefined;
  #exit: Error | undefined;

  constructor(child: ChildProcess, { onExit, abortTimeoutMs = ABORT_TIMEOUT_MS }: StartOptions) {
    this.#child = child;
    this.#onExit = onExit;
    this.#abortTimeoutMs = abortTimeoutMs;
    this.#outbox = createOutbox((messages) => {
      // A runner that died in this very moment is reported by its `exit`.
      if (child.connected) child.send(messages, () => undefined);
    });
    child.on('message', (text: string) => decodeFromRunner(text).forEach((message) => this.#receive(message)));
    // A process that could not be started never exits.
    child.on('error', () => child.pid === undefined && this.#die('it could not be started'));
    child.once('exit', (code, signal) => this.#die(signal ?? `exit code ${code ?? 'unknown'}`));
  }

  async load(request: LoadRequest): Promise<Runner> {
    this.#outbox.post({ type: 'load', request });
    const model = await this.#loaded.promise;
    return {
      model,
      pid: this.#child.pid ?? 0,
      isAlive: () => this.#exit === undefined,
      stream: (call, options) => this.#stream(call, options),
      generate: (call, options) => this.#generate(call, options),
      countPromptTokens: (call, signal) => this.#count(call, signal),
      stop: (reason) => this.stop(reason),
    };
  }

  async stop(reason?: Error): Promise<void> {
    if (this.#exit !== undefined) return;
    this.#isStopping = true;
    this.#stopReason ??= reason;
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }

  #stream(request: GenerateRequest, options: StreamOptions): Promise<ReadableStream<ModelStreamPart>> {
    const started = Promise.withResolvers<ReadableStream<ModelStreamPart>>();
    const output = openStream(() => giveUp());
    const giveUp = this.#begin(request, {
      ...options,
      whole: false,
      onPart: (part) => {
        if (part.type === 'stream-start') options.onWarnings?.(part.warnings);
        started.resolve(output.stream);
        output.write(part);
      },
      onFailure: (error) => {
        started.reject(error);
        output.fail(error);
      },
    });
    return started.promise;
  }

  #generate(request: GenerateRequest, options: CallOptions): Promise<ModelAnswer> {
    return new Promise((resolve, reject) => {
      this.#begin(request, { ...options, whole: true, onAnswer: resolve, onFailure: reject });
    });
  }

  /** @returns what to call when nobody wants the answer any more */
  #begin(request: GenerateRequest, { whole, signal, onSettled, onPart, onAnswer, onFailure }: Handlers): () => void {
    if (this.#exit !== undefined) {
      onSettled();
      onFailure(this.#exit);
      return () => undefined;
    }
    this.#lastId += 1;
    const id = this.#lastId;
    let impatience: NodeJS.Timeout | undefined;
    const giveUp = (): void => {
      // Whoever leaves with the end of a complete answer unread: the runner owes no word about that one any more.
      if (!this.#calls.has(id)) return;
      impatience ??= this.#giveUp(id);
    };
    const abort = (): void => {
      giveUp();
      onFailure(signal?.reason);
    };
    const settle = (): void => {
      clearTimeout(impatience);
      this.#calls.delete(id);
      signal?.removeEventListener('abort', abort);
      onSettled();
    };
    this.#calls.set(id, {
      onPart: (part) => {
        onPart?.(part);
        if (part.type === 'finish') settle();
      },
      onAnswer: (answer) => {
        settle();
        onAnswer?.(answer);
      },
      onFailure: (error) => {
        settle();
        onFailure(error);
      },
    });
    signal?.addEventListener('abort', abort, { once: true });
    this.#outbox.post({ type: 'generate', id, request, whole });
    if (signal?.aborted === true) abort();
    return giveUp;
  }

  #count(request: GenerateRequest, signal?: AbortSignal): Promise<number> {
    if (this.#exit !== undefined) return Promise.reject(this.#exit);
    this.#lastId += 1;
    const id = this.#lastId;
    let impatience: NodeJS.Timeout | undefined;
    const giveUp = (): void => void (impatience ??= this.#giveUp(id));
    // It waits for the runner's own word even then: until that, the runner is not free.
    return new Promise<number>((resolve, reject) => {
      this.#calls.set(id, { onCounted: resolve, onFailure: reject });
      signal?.addEventListener('abort', giveUp, { once: true });
      this.#outbox.post({ type: 'count', id, request });
      if (signal?.aborted === true) giveUp();
    }).finally(() => {
      clearTimeout(impatience);
      this.#calls.delete(id);
      signal?.removeEventListener('abort', giveUp);
    });
  }

  /** @returns what kills the runner if it does not hear: to be cleared when it did */
  #giveUp(id: number): NodeJS.Timeout {
    this.#outbox.post({ type: 'abort', id });
    return setTimeout(() => void this.stop(), this.#abortTimeoutMs);
  }

  #receive(message: FromRunner): void {
    switch (message.type) {
      case 'probed':
        // The answer to a question that a runner with a model is not asked.
        return;
      case 'loaded':
        return this.#loaded.resolve(message.model);
      case 'load-failed':
        // It said why, and goes.
        this.#isStopping = true;
        return this.#loaded.reject(errorOf(message.failure));
      case 'part':
        return this.#calls.get(message.id)?.onPart?.(message.part);
      case 'answered':
        return this.#calls.get(message.id)?.onAnswer?.(message.answer);
      case 'counted':
        return this.#calls.get(message.id)?.onCounted?.(message.promptTokens);
      case 'failed':
        return this.#calls.get(message.id)?.onFailure(errorOf(message.failure));
    }
  }

  #die(how: string): void {
    if (!this.#isStopping) this.#onExit(how);
    const exit =
      this.#stopReason ??
      new ServiceError(
        'engine_failed',
        `The model runner stopped unexpectedly (${how}). Repeating the request starts a new one.`,
      );
    this.#exit = exit;
    this.#loaded.reject(exit);
    for (const call of this.#calls.values()) call.onFailure(exit);
  }
}

function errorOf({ code, message, field, excess, neededTokens }: RunnerFailure): Error {
  if (neededTokens !== undefined) return new ContextTooShort(neededTokens);
  return new ServiceError(code, message, { field, excess });
}

interface OutputStream {
  readonly stream: ReadableStream<ModelStreamPart>;
  write(part: ModelStreamPart): void;
  fail(error: unknown): void;
}

/** A stream that ends with its `finish` part. What a slow reader leaves waiting is bounded by the context window. */
function openStream(onCancel: () => void): OutputStream {
  let isOpen = true;
  let controller: ReadableStreamDefaultController<ModelStreamPart> | undefined;
  const stream = new ReadableStream<ModelStreamPart>({
    start: (given) => {
      controller = given;
    },
    cancel: () => {
      isOpen = false;
      onCancel();
    },
  });
  return {
    stream,
    write: (part) => {
      if (!isOpen) return;
      controller?.enqueue(part);
      if (part.type !== 'finish') return;
      isOpen = false;
      controller?.close();
    },
    fail: (error) => {
      if (!isOpen) return;
      isOpen = false;
      controller?.error(error);
    },
  };
}
