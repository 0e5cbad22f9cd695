/**
 * What nobody foresaw, in words: what kind of error it was and at which line of ours. Its message stays unsaid, since it
 * may quote a prompt or a key.
 */

/** One line for the owner. */
export function internalErrorText(error: unknown): string {
  const kind = error instanceof Error ? error.name : typeof error;
  const line = error instanceof Error ? placeOf(error) : undefined;
  const where = line === undefined ? '' : ` at ${line}`;
  return `postern: something went wrong inside (${kind}${where}). Please report that line.`;
}

/** The innermost frame, as `file.js:line:column`. */
function placeOf({ stack = '' }: Error): string | undefined {
  return /^\s+at .*?([^/\\(]+:\d+:\d+)\)?$/m.exec(stack)?.[1];
}

interface LastResortOptions {
  readonly say: (words: string) => void;
  /** Ends the program with exit code 1. */
  readonly end: () => void;
}

/**
 * For what escaped every handler. A promise that nobody waited for costs nobody anything, so it is said and the program
 * goes on; after an exception in the middle of something nobody knows what is half done, so the program ends.
 */
export function installLastResort({ say, end }: LastResortOptions): void {
  process.on('unhandledRejection', (reason) => say(internalErrorText(reason)));
  process.on('uncaughtException', (error) => {
    say(`${internalErrorText(error)}\nPostern ends; start it again.`);
    end();
  });
}
