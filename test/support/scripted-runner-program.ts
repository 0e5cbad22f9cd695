/**
 * A model runner without a model: it answers from a script, a step for each result that the conversation has of a tool.
 * It stands where the engine would; its context is one that a coding agent needs. The script comes in the environment.
 */
import type { ChatHistoryItem } from 'node-llama-cpp';
import { promptCountPart, type ModelStreamPart } from '../../core/inference/model-port.ts';
import { promptTooLong } from '../../core/inference/local/prompt-size.ts';
import type { FromRunner, GenerateRequest, ToRunner } from '../../core/inference/local/runner/protocol.ts';
import { ResponseParts } from '../../core/inference/local/runner/response-parts.ts';
import { SCRIPT_VARIABLE, type Script, type Step } from './script.ts';

const CONTEXT_TOKENS = 65_536;
const LIMIT = { tokens: CONTEXT_TOKENS, by: 'training' } as const;
const CHARACTERS_PER_TOKEN = 4;

const script = JSON.parse(process.env[SCRIPT_VARIABLE] ?? '') as Script;

function send(...messages: readonly FromRunner[]): void {
  process.send?.(JSON.stringify(messages));
}

/** What the model says next. */
function answer({ input, tools = [] }: GenerateRequest): Step {
  if ('rawText' in input) return { text: 'There is no script for text without a conversation.' };
  const { history } = input;
  // Agents also ask for a title of the conversation, and the like.
  if (!history.some((item) => textOf(item).includes(script.task))) return { text: 'Not the task of the script.' };
  const results = history.flatMap(resultsOf);
  const step = script.steps[results.length];
  if (step === undefined) return { text: `The script has no step ${results.length}.` };
  const filled = fillIn(step, results);
  const names = tools.map(({ name }) => name);
  if ('tool' in filled && !names.includes(filled.tool)) {
    return { text: `There is no tool ${filled.tool} here, but: ${names.join(', ')}.` };
  }
  return filled;
}

/** Puts what the script looks for in the results into the step. */
function fillIn(step: Step, results: readonly string[]): Step {
  const text = JSON.stringify(step);
  if (!text.includes('{found}')) return step;
  const [found] = new RegExp(script.find).exec(results.join('\n')) ?? [];
  if (found === undefined) return { text: `What the script looks for is in no result: ${results.join(', ')}` };
  return JSON.parse(text.replaceAll('{found}', found)) as Step;
}

function textOf(item: ChatHistoryItem): string {
  return item.type === 'user' ? item.text : '';
}

function resultsOf(item: ChatHistoryItem): string[] {
  if (item.type !== 'model') return [];
  return item.response.flatMap((part) =>
    typeof part !== 'string' && part.type === 'functionCall' ? [JSON.stringify(part.result)] : [],
  );
}

function partsOf(step: Step, promptTokens: number): ModelStreamPart[] {
  const parts: ModelStreamPart[] = [{ type: 'stream-start', warnings: [] }, promptCountPart(promptTokens)];
  const response = new ResponseParts((part) => parts.push(part));
  const output = 'tool' in step ? JSON.stringify(step.input) : step.text;
  if ('tool' in step) {
    response.writeCall(step.tool, output);
    response.endCall(step.tool);
  } else response.write('text', output);
  response.end();
  const tokens = Math.ceil(output.length / CHARACTERS_PER_TOKEN);
  parts.push({
    type: 'finish',
    finishReason: { unified: 'tool' in step ? 'tool-calls' : 'stop', raw: undefined },
    usage: {
      inputTokens: { total: promptTokens, noCache: promptTokens, cacheRead: 0, cacheWrite: undefined },
      outputTokens: { total: tokens, text: tokens, reasoning: 0 },
    },
  });
  return parts;
}

function countTokens({ input, tools }: GenerateRequest): number {
  return Math.ceil(JSON.stringify([input, tools]).length / CHARACTERS_PER_TOKEN);
}

function generate(id: number, request: GenerateRequest): void {
  const promptTokens = countTokens(request);
  if (promptTokens > CONTEXT_TOKENS) {
    const { code, message, field } = promptTooLong(`has ${promptTokens} tokens`, LIMIT);
    send({ type: 'failed', id, failure: { code, message, field } });
  } else send(...partsOf(answer(request), promptTokens).map((part) => ({ type: 'part' as const, id, part })));
}

function receive(message: ToRunner): void {
  switch (message.type) {
    case 'probe':
      return send({ type: 'probed', freeGpuBytes: 0 });
    case 'load': {
      const { sequences } = message.request;
      const model = { contextTokens: CONTEXT_TOKENS, limit: LIMIT, sequences, trainedContextTokens: CONTEXT_TOKENS };
      return send({ type: 'loaded', model });
    }
    case 'generate':
      return generate(message.id, message.request);
    case 'count':
      return send({ type: 'counted', id: message.id, promptTokens: countTokens(message.request) });
    case 'abort':
    // It has answered by then.
  }
}

process.on('message', (messages: readonly ToRunner[]) => messages.forEach(receive));
process.on('disconnect', () => process.exit(0));
