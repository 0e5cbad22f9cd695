/** A tool for the AI SDK that the built-in model knows how to call, and whose result it can read out. */
import { jsonSchema, tool } from 'ai';

export const WEATHER_DESCRIPTION = 'Get the weather';

export const weatherTool = tool({
  description: WEATHER_DESCRIPTION,
  inputSchema: jsonSchema<{ city: string }>({
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
  }),
  execute: () => 'sunny, 18 C',
});
