/**
 * The model runner: a process of its own that holds one model and answers one parent. A crash in native code or an
 * out-of-memory kill costs the parent a runner, never the service; to unload a model is to end its process, so all
 * of its memory goes back.
 */
import { writeFileSync } from 'node:fs';
import { ServiceError } from '../../errors.ts';
import { freeGpuBytes, loadEngine, type Engine } from './engine.ts';
import { damagedModel } from './gguf-header.ts';
import type { ModelStreamPart } from '../model-port.ts';
import type { Failure, FromRunner, GenerateRequest, LoadRequest, ToRunner } from './protocol.ts';

let engine: Engine | undefined;
const running = new Map<number, AbortController>();

/** Resolves when the message is in the pipe, so that a parent that stops reading slows the generation down. */
function send(message: FromRunner): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) return resolve();
    process.send(message, undefined, undefined, () => resolve());
  });
}

/** A file whose reading makes no progress for this long is damaged in a way that the engine does not notice. */
const LOAD_STALL_MS = 60_000;

async function load(request: LoadRequest): Promise<void> {
  const stalled = setTimeout(() => void refuseLoad(damagedModel()), LOAD_STALL_MS);
  try {
    engine = await loadEngine(request, () => stalled.refresh());
    await send({ type: 'loaded', model: engine.model });
  } catch (error) {
    await refuseLoad(error);
  } finally {
    clearTimeout(stalled);
  }
}

async function refuseLoad(error: unknown): Promise<void> {
  await send({ type: 'load-failed', failure: failureOf(error) });
  process.exit(1);
}

async function generate(id: number, request: GenerateRequest): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  const parts = createPartSender(id);
  try {
    if (engine === undefined) throw new TypeError('generate came before load');
    await engine.generate(request, { signal: abort.signal, emit: (part) => parts.add(part) });
    parts.flush();
  } catch (error) {
    parts.flush();
    await send({ type: 'failed', id, failure: abort.signal.aborted ? GIVEN_UP : failureOf(error) });
  } finally {
    running.delete(id);
  }
}

/** For a parent that asked for it. */
const GIVEN_UP: Failure = { code: 'engine_failed', message: 'The request was given up.' };

interface PartSender {
  add(part: ModelStreamPart): void;
  /** Sends what has not been sent yet. */
  flush(): void;
}

/**
 * What the engine says in one go is one message: each costs both sides more than all that is in it. It goes out when
 * the engine has begun with the next token (two turns of the event loop later), so that the engine waits for no message.
 */
function createPartSender(id: number): PartSender {
  let parts: ModelStreamPart[] = [];
  const flush = (): void => {
    if (parts.length > 0) void send({ type: 'parts', id, parts });
    parts = [];
  };
  return {
    add(part) {
      parts.push(part);
      if (parts.length === 1) setImmediate(() => setImmediate(flush));
    },
    flush,
  };
}

async function count(id: number, request: GenerateRequest): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  try {
    if (engine === undefined) throw new TypeError('count came before load');
    await send({ type: 'counted', id, promptTokens: await engine.countPromptTokens(request, abort.signal) });
  } catch (error) {
    await send({ type: 'failed', id, failure: abort.signal.aborted ? GIVEN_UP : failureOf(error) });
  } finally {
    running.delete(id);
  }
}

/** Only our own errors have a message that is fit for a client; an engine's may quote paths or the prompt. */
function failureOf(error: unknown): Failure {
  if (error instanceof ServiceError) return { code: error.code, message: error.message, param: error.param };
  process.stderr.write(`${error instanceof Error ? `${error.name}: ${error.message}` : 'unknown error'}\n`);
  return { code: 'engine_failed', message: 'The model engine failed.' };
}

/** On Linux: when memory runs out, this process is the one to kill, not the gateway or the owner's desktop. */
function volunteerForOutOfMemoryKill(): void {
  try {
    writeFileSync('/proc/self/oom_score_adj', '800');
  } catch {
    // Another system, or one that forbids it: nothing is worse than before.
  }
}

volunteerForOutOfMemoryKill();
process.on('message', (message: ToRunner) => {
  switch (message.type) {
    case 'probe':
      return void freeGpuBytes().then((bytes) => send({ type: 'probed', freeGpuBytes: bytes }));
    case 'load':
      return void load(message.request);
    case 'generate':
      return void generate(message.id, message.request);
    case 'count':
      return void count(message.id, message.request);
    case 'abort':
      return running.get(message.id)?.abort();
  }
});

// The parent is gone, however it went: nobody is left to answer. Signals that a terminal sends to the whole group
// are the parent's to act on; a runner that died of Ctrl-C would cut the answers that the parent is still finishing.
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
