/** The engine's own reading of a grammar, without a model. */
import { getLlama, LlamaLogLevel, type Llama } from 'node-llama-cpp';

export function engineWithoutModel(): Promise<Llama> {
  return getLlama({ gpu: false, build: 'never', skipDownload: true, maxThreads: 1, logLevel: LlamaLogLevel.disabled });
}

/** @returns a function that says whether the engine lets a text pass, from its first character to its last */
export async function readGrammar(llama: Llama, gbnf: string): Promise<(text: string) => boolean> {
  const grammar = await llama.createGrammar({ grammar: gbnf });
  // Not in the published types.
  const { _testText: passes } = grammar as unknown as { _testText: (text: string) => boolean };
  return (text) => passes.call(grammar, text);
}
