/** Ollama's error body: `{error: "what went wrong"}`; the status says the rest. */
import type { OutwardError } from '../../errors.ts';

export function encodeOllamaError({ message }: OutwardError): { readonly error: string } {
  return { error: message };
}
