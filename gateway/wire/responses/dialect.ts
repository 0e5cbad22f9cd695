/** Open Responses, whose errors are OpenAI's. */
import { openAiDialect } from '../openai/dialect.ts';
import { CHAT_FIELDS } from '../openai/error.ts';

export const openResponses = openAiDialect(
  { name: 'responses', paths: ['/responses', '/responses/*'] },
  { ...CHAT_FIELDS, prompt: 'input', responseFormat: 'text.format' },
);
