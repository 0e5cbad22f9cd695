/**
 * The model runner: a process of its own that holds one model and answers one parent. A crash in native code or an
 * out-of-memory kill costs the parent a runner, never the service; to unload a model is to end its process, so all
 * of its memory goes back.
 */
import { writeFileSync } from 'node:fs';
import { kindAndPlace } from '../../../describe-error.ts';
import { ServiceError } from '../../../errors.ts';
import { freeGpuBytes, loadEngine, type Engine } from './engine.ts';
import { damagedModel } from './gguf-header.ts';
import { ContextTooShort } from '../prompt-size.ts';
import { createOutbox } from './outbox.ts';
import {
  encodeFromRunner,
  RUNNER_SAYS,
  type RunnerFailure,
  type FromRunner,
  type GenerateRequest,
  type LoadRequest,
  type ToRunner,
} from './protocol.ts';
import { collectWhole } from './whole-answer.ts';

let engine: Engine | undefined;
const running = new Map<number, AbortController>();

/**
 * Goes out when the engine has begun with the next token, two turns of the event loop later, so that the engine waits
 * for no message.
 */
const outbox = createOutbox<FromRunner>(
  (messages) => process.connected && process.send?.(encodeFromRunner(messages)),
  (flush) => setImmediate(() => setImmediate(flush)),
);

function send(message: FromRunner): void {
  outbox.post(message);
  outbox.flush();
}

/** A file whose reading makes no progress for this long is damaged in a way that the engine does not notice. */
const LOAD_STALL_MS = 60_000;

async function load(request: LoadRequest): Promise<void> {
  const stalled = setTimeout(() => refuseLoad(damagedModel()), LOAD_STALL_MS);
  try {
    engine = await loadEngine(request, () => stalled.refresh());
    send({ type: 'loaded', model: engine.model });
  } catch (error) {
    refuseLoad(error);
  } finally {
    clearTimeout(stalled);
  }
}

function refuseLoad(error: unknown): void {
  const refusal: FromRunner = { type: 'load-failed', failure: failureOf(error) };
  process.send?.(encodeFromRunner([refusal]), undefined, undefined, () => process.exit(1));
}

async function generate({ id, request, whole }: Extract<ToRunner, { type: 'generate' }>): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  try {
    if (engine === undefined) throw new TypeError('generate came before load');
    const { signal } = abort;
    if (whole) {
      const { emit, take } = collectWhole(() => performance.now());
      await engine.generate(request, { signal, emit });
      outbox.post({ type: 'answered', id, answer: take() });
    } else await engine.generate(request, { signal, emit: (part) => outbox.post({ type: 'part', id, part }) });
  } catch (error) {
    outbox.post({ type: 'failed', id, failure: abort.signal.aborted ? GIVEN_UP : failureOf(error) });
  } finally {
    running.delete(id);
    outbox.flush();
  }
}

/** For a parent that asked for it. */
const GIVEN_UP: RunnerFailure = { code: 'engine_failed', message: 'The request was given up.' };

async function count(id: number, request: GenerateRequest): Promise<void> {
  const abort = new AbortController();
  running.set(id, abort);
  try {
    if (engine === undefined) throw new TypeError('count came before load');
    send({ type: 'counted', id, promptTokens: await engine.countPromptTokens(request, abort.signal) });
  } catch (error) {
    send({ type: 'failed', id, failure: abort.signal.aborted ? GIVEN_UP : failureOf(error) });
  } finally {
    running.delete(id);
  }
}

/** Only our own errors have a message that is fit for a client, or a log; an engine's may quote paths or the prompt. */
function failureOf(error: unknown): RunnerFailure {
  if (error instanceof ContextTooShort) {
    return { code: 'prompt_too_long', message: error.message, neededTokens: error.neededTokens };
  }
  if (error instanceof ServiceError) {
    const { code, message, field, excess } = error;
    return { code, message, field, excess };
  }
  process.stderr.write(`${RUNNER_SAYS} the model engine failed (${kindAndPlace(error)}).\n`);
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

function receive(message: ToRunner): void {
  switch (message.type) {
    case 'probe':
      return void freeGpuBytes().then((bytes) => send({ type: 'probed', freeGpuBytes: bytes }));
    case 'load':
      return void load(message.request);
    case 'generate':
      return void generate(message);
    case 'count':
      return void count(message.id, message.request);
    case 'abort':
      return running.get(message.id)?.abort();
  }
}

volunteerForOutOfMemoryKill();
process.on('message', (messages: readonly ToRunner[]) => messages.forEach(receive));

// The parent is gone, however it went: nobody is left to answer. Signals that a terminal sends to the whole group
// are the parent's to act on; a runner that died of Ctrl-C would cut the answers that the parent is still finishing.
process.on('disconnect', () => process.exit(0));
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => undefined);
