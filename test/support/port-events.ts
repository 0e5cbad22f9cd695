/** Any sequence of events that the model port may send, as a fast-check arbitrary. */
import fc from 'fast-check';
import { promptCountPart, type ModelStreamPart } from '../../core/inference/model-port.ts';
import { ServiceError } from '../../core/errors.ts';

export interface PortAnswer {
  readonly parts: readonly ModelStreamPart[];
  /** What the parts say when put together. */
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly { readonly id: string; readonly name: string; readonly input: string }[];
  readonly finish: 'stop' | 'length' | 'tool-calls' | 'error';
}

type Block =
  | { readonly kind: 'text' | 'reasoning'; readonly deltas: readonly string[] }
  | {
      readonly kind: 'call';
      readonly name: string;
      readonly input: object;
      readonly cuts: readonly number[];
      readonly isStreamed: boolean;
    };

const delta = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('\n\n', 'data: x\n\n', '"', '\u2028', '😀', '[DONE]'),
);
const textBlock = fc.record({
  kind: fc.constantFrom('text' as const, 'reasoning' as const),
  deltas: fc.array(delta, { minLength: 1, maxLength: 6 }),
});
const callBlock = fc.record({
  kind: fc.constant('call' as const),
  name: fc.stringMatching(/^[a-z_]{1,12}$/),
  input: fc.dictionary(fc.stringMatching(/^[a-z]{1,6}$/), fc.oneof(fc.string(), fc.integer(), fc.boolean()), {
    maxKeys: 3,
  }),
  cuts: fc.array(fc.nat(40), { maxLength: 4 }),
  isStreamed: fc.boolean(),
});

/** Legal by the port's rules: blocks one after the other, then `finish`; or a failure at any point. */
export const portAnswer: fc.Arbitrary<PortAnswer> = fc
  .record({
    blocks: fc.array(fc.oneof<fc.Arbitrary<Block>[]>(textBlock, callBlock), { maxLength: 5 }),
    ending: fc.constantFrom('stop' as const, 'length' as const, 'error' as const),
    tokens: fc.tuple(fc.nat(5000), fc.nat(5000), fc.nat(100)),
  })
  .map(({ blocks, ending, tokens }) => {
    const calls = blocks.flatMap((block, index) =>
      block.kind === 'call' ? [{ id: `call_${index}`, name: block.name, input: JSON.stringify(block.input) }] : [],
    );
    const joined = (kind: 'text' | 'reasoning') =>
      blocks.map((block) => (block.kind === kind ? block.deltas.join('') : '')).join('');
    const finish = ending === 'stop' && calls.length > 0 ? 'tool-calls' : ending;
    const parts: ModelStreamPart[] = [
      { type: 'stream-start', warnings: [] },
      promptCountPart(tokens[0]),
      ...blocks.flatMap((block, index) => blockParts(block, index)),
      lastPart(finish, tokens),
    ];
    return { parts, text: joined('text'), reasoning: joined('reasoning'), calls, finish };
  });

function blockParts(block: Block, index: number): ModelStreamPart[] {
  const id = String(index);
  if (block.kind !== 'call') {
    return [
      { type: `${block.kind}-start`, id },
      ...block.deltas.map((text): ModelStreamPart => ({ type: `${block.kind}-delta`, id, delta: text })),
      { type: `${block.kind}-end`, id },
    ];
  }
  const callId = `call_${index}`;
  const input = JSON.stringify(block.input);
  const whole: ModelStreamPart = { type: 'tool-call', toolCallId: callId, toolName: block.name, input };
  if (!block.isStreamed) return [whole];
  const edges = [0, ...block.cuts.map((cut) => Math.min(cut, input.length)).toSorted((a, b) => a - b), input.length];
  return [
    { type: 'tool-input-start', id: callId, toolName: block.name },
    ...edges.slice(1).map((edge, at): ModelStreamPart => ({
      type: 'tool-input-delta',
      id: callId,
      delta: input.slice(edges[at], edge),
    })),
    { type: 'tool-input-end', id: callId },
    whole,
  ];
}

function lastPart(
  finish: PortAnswer['finish'],
  [prompt, completion, reasoning]: readonly [number, number, number],
): ModelStreamPart {
  if (finish === 'error')
    return { type: 'error', error: new ServiceError('engine_failed', 'The model runner stopped unexpectedly.') };
  return {
    type: 'finish',
    finishReason: { unified: finish, raw: undefined },
    usage: {
      inputTokens: { total: prompt, noCache: prompt, cacheRead: 0, cacheWrite: undefined },
      outputTokens: { total: completion + reasoning, text: completion, reasoning },
    },
  };
}

/** The port's parts as the stream that a model gives. */
export function streamOf(parts: readonly ModelStreamPart[]): ReadableStream<ModelStreamPart> {
  return ReadableStream.from<ModelStreamPart>(parts);
}
