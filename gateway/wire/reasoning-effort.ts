/** OpenAI's scale of how much a model shall think before it answers, which is the model port's as well. */
export const REASONING_EFFORTS = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh'] as const;
