/**
 * Open Responses, the tools: those of a request as the model port has them. Pure.
 *
 * Two kinds need care. Tools in a `namespace` (Codex sends its MCP tools so) become plain functions with one joined
 * name, which is taken apart again in the answer. Tools that OpenAI itself would run are left out, and named.
 */
import { createHash } from 'node:crypto';
import type { LanguageModelV4FunctionTool, LanguageModelV4ToolChoice } from '@ai-sdk/provider';
import * as z from 'zod';
import { mapped, type Steps } from '../../../core/steps.ts';
import { RequestError } from '../../errors.ts';
import { defined } from '../defined.ts';
import { jsonObjectSchema } from '../json-object.ts';

/** What every client and model takes as a function's name. */
const MAX_NAME_LENGTH = 64;

/** Joined to a function's name, which is cut where that is too long. */
export const MAX_NAMESPACE_LENGTH = 256;

const functionToolSchema = z.object({
  type: z.literal('function'),
  name: z.string().regex(/^[\w.-]{1,64}$/, 'expected 1 to 64 letters, digits, "_", "-" or "."'),
  description: z.string().nullish(),
  parameters: jsonObjectSchema.nullish(),
  strict: z.boolean().nullish(),
});
type FunctionTool = z.output<typeof functionToolSchema>;

const customToolSchema = z.object({ type: z.literal('custom') });

const namespaceToolSchema = z.object({
  type: z.literal('namespace'),
  name: z.string().min(1).max(MAX_NAMESPACE_LENGTH),
  tools: z.array(z.discriminatedUnion('type', [functionToolSchema, customToolSchema])),
});

const HOSTED_TOOL_TYPES = [
  'apply_patch',
  'code_interpreter',
  'computer',
  'computer_use',
  'computer_use_preview',
  'custom',
  'file_search',
  'image_generation',
  'local_shell',
  'mcp',
  'programmatic_tool_calling',
  'shell',
  'tool_search',
  'web_search',
  'web_search_2025_08_26',
  'web_search_preview',
  'web_search_preview_2025_03_11',
] as const;

const hostedToolSchema = z.object({ type: z.literal(HOSTED_TOOL_TYPES) });

export const toolSchema = z.discriminatedUnion('type', [functionToolSchema, namespaceToolSchema, hostedToolSchema], {
  error: 'expected "function", "namespace", or the type of a tool that OpenAI hosts',
});
type Tool = z.output<typeof toolSchema>;

const namedFunctionSchema = z.object({
  type: z.literal('function'),
  name: z.string().max(MAX_NAMESPACE_LENGTH),
  namespace: z.string().max(MAX_NAMESPACE_LENGTH).nullish(),
});

const allowedToolsSchema = z.object({
  type: z.literal('allowed_tools'),
  mode: z.enum(['auto', 'required']).default('auto'),
  tools: z.array(z.discriminatedUnion('type', [namedFunctionSchema, hostedToolSchema])),
});

export const toolChoiceSchema = z.union([
  z.enum(['none', 'auto', 'required']),
  z.discriminatedUnion('type', [namedFunctionSchema, allowedToolsSchema], {
    error: 'expected "function" or "allowed_tools"; nothing else can be called here',
  }),
]);
type ToolChoice = z.output<typeof toolChoiceSchema>;

/** A function as clients name it. */
export interface FunctionName {
  readonly name: string;
  readonly namespace?: string | null | undefined;
}

export interface Tools {
  readonly functions: readonly LanguageModelV4FunctionTool[];
  /** Where in the request there was something that was left out. */
  readonly ignored: readonly string[];
  /** The model's name of a function; of one that is not among the tools, what it would be. */
  modelName(called: FunctionName): string;
  clientName(modelName: string): FunctionName;
}

/** @throws {RequestError} `bad_request` when two tools have one name */
export function* parseTools(tools: readonly Tool[]): Steps<Tools> {
  const declared = tools.flatMap((tool, index) => declaredFunctions(tool, `tools[${index}]`));
  const modelNames = yield* nameFunctions(declared);
  const modelName = (called: FunctionName): string => modelNames.get(qualified(called)) ?? joinedName(called);
  const clientNames = new Map(declared.map(({ called }) => [modelName(called), called]));
  return {
    functions: yield* mapped(declared, ({ called, tool }) => portTool(tool, modelName(called))),
    ignored: tools.flatMap(ignoredTypes).map((type) => `tools.${type}`),
    modelName,
    clientName: (name) => clientNames.get(name) ?? { name },
  };
}

interface DeclaredFunction {
  readonly called: FunctionName;
  readonly tool: FunctionTool;
  /** Where in the request. */
  readonly at: string;
}

function declaredFunctions(tool: Tool, at: string): DeclaredFunction[] {
  if (tool.type === 'function') return [{ called: { name: tool.name }, tool, at }];
  if (tool.type !== 'namespace') return [];
  return tool.tools.flatMap((member) =>
    member.type === 'function' ? [{ called: { namespace: tool.name, name: member.name }, tool: member, at }] : [],
  );
}

function ignoredTypes(tool: Tool): string[] {
  if (tool.type === 'function') return [];
  return tool.type === 'namespace' ? tool.tools.flatMap(ignoredTypes) : [tool.type];
}

/** The model's name of each function. One without a namespace keeps its own, whatever a joined one would have been. */
function* nameFunctions(declared: readonly DeclaredFunction[]): Steps<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const taken = new Set(declared.flatMap(({ called }) => (called.namespace == null ? [called.name] : [])));
  for (const { called, at } of declared) {
    yield;
    if (names.has(qualified(called))) duplicateTool(at);
    const joined = joinedName(called);
    const name = called.namespace != null && taken.has(joined) ? hashedName(joined, called) : joined;
    taken.add(name);
    names.set(qualified(called), name);
  }
  return names;
}

function duplicateTool(at: string): never {
  throw new RequestError('bad_request', `${at}: another tool has the same name`, { param: at });
}

function portTool({ description, parameters, strict }: FunctionTool, name: string): LanguageModelV4FunctionTool {
  return {
    type: 'function',
    name,
    inputSchema: parameters ?? { type: 'object', properties: {} },
    ...defined({ description, strict }),
  };
}

/** Neither part can hold a line feed and be taken for another pair. */
function qualified({ namespace, name }: FunctionName): string {
  return JSON.stringify([namespace, name]);
}

/** `mcp__files` and `read` make `mcp__files__read`; some clients end the namespace with the separator already. */
function joinedName(called: FunctionName): string {
  const { namespace, name } = called;
  if (namespace == null) return name;
  const joined = `${namespace.endsWith('__') ? namespace : `${namespace}__`}${name}`;
  const legal = joined.replaceAll(/[^\w.-]/g, '_');
  return legal.length <= MAX_NAME_LENGTH && legal === joined ? joined : hashedName(legal, called);
}

/** As much of a name as there is room for, and eight digits that tell it from all others. */
function hashedName(name: string, called: FunctionName): string {
  const digits = createHash('sha256').update(qualified(called)).digest('hex').slice(0, 8);
  return `${name.slice(0, MAX_NAME_LENGTH - digits.length - 1)}_${digits}`;
}

interface PortTools {
  readonly tools?: LanguageModelV4FunctionTool[];
  readonly toolChoice?: LanguageModelV4ToolChoice;
}

export function portTools(tools: Tools, choice: ToolChoice): PortTools {
  const isOneOf = typeof choice === 'object' && choice.type === 'allowed_tools';
  const allowed = isOneOf
    ? new Set(choice.tools.flatMap((tool) => (tool.type === 'function' ? [tools.modelName(tool)] : [])))
    : undefined;
  const callable = tools.functions.filter((tool) => allowed?.has(tool.name) ?? true);
  const toolChoice = portToolChoice(tools, choice);
  return callable.length === 0 && toolChoice.type === 'auto' ? {} : { tools: callable, toolChoice };
}

function portToolChoice(tools: Tools, choice: ToolChoice): LanguageModelV4ToolChoice {
  if (typeof choice === 'string') return { type: choice };
  return choice.type === 'function' ? { type: 'tool', toolName: tools.modelName(choice) } : { type: choice.mode };
}
