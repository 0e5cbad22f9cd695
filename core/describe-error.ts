/** What failed and where, without the message: an unexpected error's may quote the prompt or a key. */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { kind: typeof error };
  return { kind: error.name, at: error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) };
}
