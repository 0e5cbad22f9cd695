/** A prompt that can't fit is told from one that does without being tokenised as a whole. */
import { describe, expect, test } from 'vitest';
import { SERVICE } from '../../../../../core/inference/call-owner.ts';
import { measurePrompt } from '../../../../../core/inference/local/runner/prompt-measure.ts';
import type { GenerateRequest } from '../../../../../core/inference/local/runner/protocol.ts';
import { refuseEndlessPrompt } from '../../../../../core/inference/local/prompt-size.ts';

const MIB = 1024 * 1024;

/** Four characters are a token. @returns how many characters it was asked about */
async function measure(
  request: GenerateRequest,
  { signal = new AbortController().signal, onPiece = (): void => undefined, contextTokens = 8192 } = {},
): Promise<number> {
  let characters = 0;
  const countTokens = (text: string): number => {
    characters += text.length;
    onPiece();
    return Math.ceil(text.length / 4);
  };
  await measurePrompt(request, { countTokens, limit: { tokens: contextTokens, by: 'training' }, signal }).catch(
    (error: unknown) => {
      throw Object.assign(error as Error, { characters });
    },
  );
  return characters;
}

const owner = SERVICE;
const raw = (length: number): GenerateRequest => ({ owner, input: { rawText: 'x'.repeat(length) } });

describe('a prompt', () => {
  test('of some contexts’ length stops being counted at two of them', async () => {
    const refusal = await measure(raw(32 * MIB)).catch((error: unknown) => error);
    expect(refusal).toMatchObject({
      code: 'prompt_too_long',
      message:
        "The prompt has more than 16384 tokens, but this model's context window holds 8192, the answer included. The model was trained for no more.",
    });
    expect((refusal as { characters: number }).characters).toBeLessThanOrEqual(16_384 * 4 + 16_384);
  });

  test('that fits is counted in all its parts', async () => {
    const tool = { type: 'function', name: 'f', inputSchema: { type: 'object' } } as const;
    const request: GenerateRequest = {
      owner,
      input: {
        history: [
          { type: 'system', text: 'abcd' },
          { type: 'user', text: 'efgh' },
          {
            type: 'model',
            response: ['ijkl', { type: 'segment', segmentType: 'thought', text: 'mnop', ended: true }],
          },
        ],
      },
      tools: [tool],
    };
    expect(await measure(request, { contextTokens: 16 })).toBe(16 + JSON.stringify(tool).length);
    expect(await measure({ ...request, toolChoice: { type: 'none' } }, { contextTokens: 16 })).toBe(16);
    // As it would fit if each byte were a token, nothing has to be counted.
    expect(await measure(request)).toBe(0);
  });

  test('is not counted on when its client has left', async () => {
    const gone = new AbortController();
    let pieces = 0;
    const onPiece = (): void => {
      pieces += 1;
      gone.abort();
    };
    await expect(measure(raw(60_000), { signal: gone.signal, onPiece })).rejects.toThrow('aborted');
    expect(pieces).toBe(1);
  });
});

test('what no context could hold is refused before it is sent to a runner, wherever in the request it stands', () => {
  const limit = { tokens: 8192, by: 'training' } as const;
  const model = { contextTokens: 8192, limit, sequences: 1, trainedContextTokens: 8192 };
  const most = 8192 * 256;
  const tool = (description: string) => ({ type: 'function', name: '', description, inputSchema: {} }) as const;
  for (const make of [
    (text: string): GenerateRequest => ({ owner, input: { rawText: text } }),
    (text: string): GenerateRequest => ({ owner, input: { history: [{ type: 'user', text }] } }),
    (text: string): GenerateRequest => ({ owner, input: { rawText: '' }, tools: [tool(text)] }),
  ]) {
    expect(() => refuseEndlessPrompt(make('x'.repeat(most - 64)), model)).not.toThrow();
    expect(() => refuseEndlessPrompt(make('x'.repeat(most + 1)), model)).toThrow(/^The prompt has more text than 8192/);
  }
});
