/**
 * How a call is laid out for a model: the engine's own template for that model family ("chat wrapper"), with three
 * differences that serving other people's clients needs.
 *
 * - Tools are documented with the very schema that the client sent, while the grammar gets the subset it can do.
 * - A tool's result is shown as the text that the client sent, not quoted a second time.
 * - A call can be made to begin with a tool call, which is what `tool_choice: required` means.
 */
import {
  LlamaText,
  type ChatModelFunctions,
  type ChatWrapper,
  type ChatWrapperGenerateContextStateOptions,
  type LlamaChatResponse,
} from 'node-llama-cpp';
import type { LanguageModelV4FunctionTool } from '@ai-sdk/provider';
import { ServiceError } from '../../../errors.ts';
import { isRecord } from '../../../json.ts';
import { grammarSchema } from './grammar-schema.ts';

interface TemplateOptions {
  readonly tools: readonly LanguageModelV4FunctionTool[];
  readonly mustCall: boolean;
}

export function chatTemplate(family: ChatWrapper, { tools, mustCall }: TemplateOptions): ChatWrapper {
  const documented = functionsOf(tools, documentedSchema);
  // The family's methods find these through `this`, so every path inside them is covered, whichever family it is.
  const template: ChatWrapper = Object.create(family);
  template.generateContextState = (options: ChatWrapperGenerateContextStateOptions) => {
    const state = family.generateContextState.call(template, {
      ...options,
      // Also where the engine itself knows of none, since the answer has a grammar of its own.
      ...(tools.length === 0 ? {} : { availableFunctions: documented }),
    });
    if (!mustCall) return state;
    const { contextText, stopGenerationTriggers } = state;
    return {
      contextText,
      stopGenerationTriggers,
      functionCall: { initiallyEngaged: true, disengageInitiallyEngaged: [] },
    };
  };
  template.generateFunctionCallResult = (name, params, result) =>
    typeof result === 'string' && hasPlainResults(family)
      ? family._generateFunctionCallResult(name, params, result)
      : family.generateFunctionCallResult(name, params, result);
  return template;
}

/** What a family's calls begin with, as models write it at the start of an answer. */
export function callStarts({ settings }: ChatWrapper): readonly LlamaText[] {
  const { call } = settings.functions;
  const section = settings.functions.parallelism?.call;
  const sections = [section?.sectionPrefix ?? '', ...(section?.sectionPrefixAlternateMatches ?? [])];
  const prefixes = [call.prefix, ...(call.prefixAlternateMatches ?? [])];
  const starts = sections.flatMap((before) => prefixes.map((prefix) => LlamaText([before, prefix])));
  // Some families set calls apart from what was said before; here there is nothing before.
  return [...starts, ...starts.map((start) => start.trimStart())].filter((start) => start.values.length > 0);
}

/** Whether it was one of those that ended an answer, and none of its client's own. */
export function isCallStart(ending: LlamaChatResponse['metadata'], stopSequences: readonly string[]): boolean {
  return ending.stopReason === 'customStopTrigger' && !stopSequences.includes(ending.customStopTrigger.join(''));
}

/** The tools as the grammar takes them. */
export function grammarFunctions(tools: readonly LanguageModelV4FunctionTool[]): ChatModelFunctions {
  tools.forEach(refuseOtherThanObject);
  return functionsOf(tools, (schema) => grammarSchema(schema, 'free'));
}

/** @throws {ServiceError} `invalid_request`: arguments are named, in every style */
function refuseOtherThanObject({ name, inputSchema }: LanguageModelV4FunctionTool): void {
  const type: unknown = isRecord(inputSchema) ? inputSchema['type'] : undefined;
  if (type === undefined || [type].flat().includes('object')) return;
  throw new ServiceError('invalid_request', `The parameters of the tool '${name}' must be an object.`);
}

function functionsOf(
  tools: readonly LanguageModelV4FunctionTool[],
  schemaOf: (schema: unknown) => ReturnType<typeof grammarSchema>,
): ChatModelFunctions {
  return Object.fromEntries(
    tools.map((tool) => [
      tool.name,
      {
        ...(tool.description === undefined ? {} : { description: tool.description }),
        params: schemaOf(tool.inputSchema),
      },
    ]),
  );
}

/** Documentation is only ever serialized, so the client's schema passes through the engine's narrower type as it is. */
function documentedSchema(schema: unknown): ReturnType<typeof grammarSchema> {
  return isGrammarSchema(schema) ? schema : { type: 'object', properties: {} };
}

function isGrammarSchema(schema: unknown): schema is ReturnType<typeof grammarSchema> {
  return isRecord(schema);
}

/** Not in the engine's published types, though every family inherits it: the result's frame without the quoting. */
interface PlainResults {
  _generateFunctionCallResult(name: string, params: unknown, text: string): LlamaText;
}

function hasPlainResults(family: object): family is PlainResults {
  return '_generateFunctionCallResult' in family && typeof family._generateFunctionCallResult === 'function';
}
