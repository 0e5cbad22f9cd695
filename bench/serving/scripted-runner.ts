/** A model runner that answers at once, and always the same: what is left is what everything around the engine costs. */
interface Message {
  readonly type: string;
  readonly id: number;
  readonly whole: boolean;
}

const TEXT = 'The capital of France is Paris.';
const END = {
  finishReason: { unified: 'stop', raw: 'eogToken' },
  usage: {
    inputTokens: { total: 10, noCache: 10, cacheRead: 0 },
    outputTokens: { total: 8, text: 8, reasoning: 0 },
  },
};

function answersTo({ type, id, whole }: Message): readonly object[] {
  if (type === 'load') {
    return [
      {
        type: 'loaded',
        model: {
          contextTokens: 4096,
          limit: { tokens: 4096, by: 'training' },
          sequences: 32,
          trainedContextTokens: 4096,
        },
      },
    ];
  }
  if (type !== 'generate') return [];
  if (whole) {
    return [{ type: 'answered', id, answer: { content: [{ type: 'text', text: TEXT }], warnings: [], ...END } }];
  }
  const parts = [
    { type: 'stream-start', warnings: [] },
    { type: 'raw', rawValue: { promptTokens: 10 } },
    { type: 'text-start', id: '0' },
    { type: 'text-delta', id: '0', delta: TEXT },
    { type: 'text-end', id: '0' },
    { type: 'finish', ...END },
  ];
  return parts.map((part) => ({ type: 'part', id, part }));
}

process.on('message', (messages: readonly Message[]) => process.send?.(JSON.stringify(messages.flatMap(answersTo))));
process.on('disconnect', () => process.exit(0));
