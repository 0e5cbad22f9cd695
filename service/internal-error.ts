/**
 * An unexpected error in words: its type, and the line of our code. Its message is left out, since it may quote a prompt
 * or a key.
 */
import { kindAndPlace } from '../core/describe-error.ts';
import { findDiskFault } from '../storage/disk-fault.ts';

/** One line for the owner. */
export function internalErrorText(error: unknown): string {
  return `postern: internal error (${kindAndPlace(error)}). Please report this line.`;
}

/** For the end of a sentence that says what did not work: ` (ENOSPC)`, or ` (TypeError at some-file.js:1:2)`. */
export function reasonOf(error: unknown): string {
  return ` (${findDiskFault(error)?.code ?? kindAndPlace(error)})`;
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
