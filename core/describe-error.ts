/** What failed and where, without the message: an unexpected error's may quote the prompt or a key. */
export function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { kind: typeof error };
  return { kind: error.name, at: error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) };
}

/** The same in a few words: `TypeError at some-file.js:1:2`. */
export function kindAndPlace(error: unknown): string {
  const kind = error instanceof Error ? error.name : typeof error;
  const line = error instanceof Error ? placeOf(error) : undefined;
  return line === undefined ? kind : `${kind} at ${line}`;
}

/** The innermost frame, as `file.js:line:column`. */
function placeOf({ stack = '' }: Error): string | undefined {
  return /^\s+at .*?([^/\\(]+:\d+:\d+)\)?$/m.exec(stack)?.[1];
}
