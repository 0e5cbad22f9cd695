/** Ollama's error body: `{error: "what went wrong"}`; the status says the rest. */
import type { WireError } from '../dialect.ts';

export function encodeOllamaError({ message }: WireError): { readonly error: string } {
  return { error: message };
}
