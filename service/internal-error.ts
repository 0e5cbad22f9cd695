/**
 * An unexpected error in words: its type, and the line of our code. Its message is left out, since it may quote a prompt
 * or a key.
 */

/** One line for the owner. */
export function internalErrorText(error: unknown): string {
  const kind = error instanceof Error ? error.name : typeof error;
  const line = error instanceof Error ? placeOf(error) : undefined;
  const where = line === undefined ? '' : ` at ${line}`;
  return `postern: internal error (${kind}${where}). Please report this line.`;
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
 * For what no handler caught. After an unhandled rejection the program reports it and goes on: nothing waited for that
 * promise. After an uncaught exception it ends, since nobody knows what is half done.
 */
export function installLastResort({ say, end }: LastResortOptions): void {
  process.on('unhandledRejection', (reason) => say(internalErrorText(reason)));
  process.on('uncaughtException', (error) => {
    say(`${internalErrorText(error)}\nPostern stops. Start it again.`);
    end();
  });
}
