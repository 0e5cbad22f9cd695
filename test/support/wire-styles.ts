/** One question in each wire style, and where its client is told how many tokens that took. */

export interface Style {
  readonly path: string;
  readonly route: string;
  readonly ask: object;
  readonly streamed: object;
  /** Cuts the answer short. */
  readonly limit: object;
  /** Fields of the answer; those of one kind add up. */
  readonly tokens: { readonly input: readonly string[]; readonly cached?: string; readonly output: string };
}

export const question = 'What is the capital of France?';
const messages = [{ role: 'user', content: question }];

const openAi = {
  streamed: { stream: true, stream_options: { include_usage: true } },
  limit: { max_tokens: 3 },
  tokens: {
    input: ['usage.prompt_tokens'],
    cached: 'usage.prompt_tokens_details.cached_tokens',
    output: 'usage.completion_tokens',
  },
};
const ollama = {
  streamed: { stream: true },
  limit: { options: { num_predict: 3 } },
  tokens: { input: ['prompt_eval_count'], output: 'eval_count' },
};

export const STYLES: Readonly<Record<string, Style>> = {
  'OpenAI chat': { path: '/v1/chat/completions', route: '/chat/completions', ask: { messages }, ...openAi },
  'OpenAI completions': {
    path: '/v1/completions',
    route: '/completions',
    // Laid out as the model's own template would, so that it knows when it is done.
    ask: { prompt: `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`, max_tokens: 100 },
    ...openAi,
  },
  'Anthropic messages': {
    path: '/v1/messages',
    route: '/messages',
    ask: { messages, max_tokens: 100 },
    streamed: { stream: true },
    limit: { max_tokens: 3 },
    tokens: {
      input: ['usage.input_tokens', 'usage.cache_read_input_tokens'],
      cached: 'usage.cache_read_input_tokens',
      output: 'usage.output_tokens',
    },
  },
  'Open Responses': {
    path: '/v1/responses',
    route: '/responses',
    ask: { input: question, store: false },
    streamed: { stream: true },
    limit: { max_output_tokens: 16, input: 'Tell me a story about Ada.' },
    tokens: {
      input: ['usage.input_tokens'],
      cached: 'usage.input_tokens_details.cached_tokens',
      output: 'usage.output_tokens',
    },
  },
  'Ollama chat': { path: '/api/chat', route: '/chat', ask: { messages, stream: false }, ...ollama },
  'Ollama generate': { path: '/api/generate', route: '/generate', ask: { prompt: question, stream: false }, ...ollama },
};

/** What a client was told of its tokens, in an answer that came whole or in the events of a stream. */
export function tokensTold(answer: string, { tokens }: Style): Record<string, number> {
  const events = answer
    .split('\n')
    .map((line) => line.replace(/^data: /, ''))
    .filter((line) => line.startsWith('{'))
    .map((line): unknown => JSON.parse(line));
  const told = (path: string): number =>
    events
      .flatMap((event) => ['', 'message.', 'response.'].map((prefix) => valueAt(event, prefix + path)))
      .findLast((value) => typeof value === 'number') ?? 0;
  return {
    input_tokens: tokens.input.reduce((total, path) => total + told(path), 0),
    ...(tokens.cached === undefined ? {} : { cached_tokens: told(tokens.cached) }),
    output_tokens: told(tokens.output),
  };
}

function valueAt(value: unknown, path: string): unknown {
  return path.split('.').reduce((inner, name) => (inner as Record<string, unknown> | null | undefined)?.[name], value);
}
