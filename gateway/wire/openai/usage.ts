/** OpenAI's token counts, as chat completions and text completions have them. */
import type { LanguageModelV4Usage } from '@ai-sdk/provider';

export function encodeUsage({ inputTokens, outputTokens }: LanguageModelV4Usage): object {
  const prompt = inputTokens.total ?? 0;
  const completion = outputTokens.total ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: inputTokens.cacheRead ?? 0, audio_tokens: 0 },
    completion_tokens_details: {
      reasoning_tokens: outputTokens.reasoning ?? 0,
      audio_tokens: 0,
      accepted_prediction_tokens: 0,
      rejected_prediction_tokens: 0,
    },
  };
}
