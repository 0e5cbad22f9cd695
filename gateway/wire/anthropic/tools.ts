/**
 * Anthropic messages, the tools: into the model port's. Pure.
 *
 * Only tools that the client describes itself can be called here. Those that Anthropic describes or runs (`web_search`,
 * `bash`, `computer`, …) come with every request of some clients; they are ignored and named, and the model does
 * without.
 */
import type { LanguageModelV4ToolChoice } from '@ai-sdk/provider';
import * as z from 'zod';
import type { ModelCall } from '../../../core/inference/model-port.ts';
import type { Ignore } from './content.ts';
import { defined } from '../defined.ts';
import { withoutVersion } from '../ignored.ts';
import { jsonObjectSchema } from '../json-object.ts';

const clientToolSchema = z.object({
  type: z.literal('custom').nullish(),
  name: z.string().regex(/^[\w.-]{1,128}$/, 'expected 1 to 128 letters, digits, "_", "-" or "."'),
  description: z.string().nullish(),
  input_schema: jsonObjectSchema,
  strict: z.boolean().nullish(),
});

const hostedToolSchema = z.looseObject({ type: z.string().refine((type) => type !== 'custom', { abort: true }) });
type HostedTool = z.output<typeof hostedToolSchema>;

export const toolSchema = z.union([clientToolSchema, hostedToolSchema]);
type Tool = z.output<typeof toolSchema>;

const disableParallel = z.boolean().nullish();

export const toolChoiceSchema = z.discriminatedUnion(
  'type',
  [
    z.object({ type: z.literal(['auto', 'any']), disable_parallel_tool_use: disableParallel }),
    z.object({ type: z.literal('tool'), name: z.string().min(1), disable_parallel_tool_use: disableParallel }),
    z.object({ type: z.literal('none') }),
  ],
  { error: 'expected the type "auto", "any", "tool" or "none"' },
);
type ToolChoice = z.output<typeof toolChoiceSchema>;

interface ToolFields {
  readonly tools?: readonly Tool[] | null | undefined;
  readonly tool_choice?: ToolChoice | null | undefined;
}

export function parseTools(
  { tools, tool_choice: choice }: ToolFields,
  ignore: Ignore,
): Pick<ModelCall, 'tools' | 'toolChoice'> {
  const functions = (tools ?? []).flatMap((tool) => {
    if (isHosted(tool)) {
      ignore(`tools.${withoutVersion(tool.type)}`);
      return [];
    }
    const { name, description, input_schema: inputSchema, strict } = tool;
    return [{ type: 'function' as const, name, inputSchema, ...defined({ description, strict }) }];
  });
  const toolChoice = portToolChoice(choice ?? { type: 'auto' });
  return functions.length === 0 && toolChoice.type === 'auto' ? {} : { tools: functions, toolChoice };
}

/** False where the client wants one call at a time; undefined where it does not say. */
export function parallelToolCalls(choice: ToolChoice | null | undefined): boolean | undefined {
  const isDisabled = choice == null || choice.type === 'none' ? undefined : choice.disable_parallel_tool_use;
  return isDisabled == null ? undefined : !isDisabled;
}

function isHosted(tool: Tool): tool is HostedTool {
  return typeof tool.type === 'string' && tool.type !== 'custom';
}

function portToolChoice(choice: ToolChoice): LanguageModelV4ToolChoice {
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { type: choice.type };
    case 'any':
      return { type: 'required' };
    case 'tool':
      return { type: 'tool', toolName: choice.name };
  }
}
