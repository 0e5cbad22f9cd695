/**
 * What a command is: a value with a name, a usage text and a function. It touches no global: what it reads and writes
 * is handed to it, and its result is an exit code (0 done, 1 failed, 2 misused). Data goes to stdout, words to stderr.
 */
import type { ParseArgsConfig } from 'node:util';
import type { EditorOptions, LineEditor } from './line-editor.ts';
import type { StyledText } from './styled-text.ts';

export type CommandOptions = NonNullable<ParseArgsConfig['options']>;

export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** What `--help` prints, an example included. */
  readonly usage: string;
  readonly options: CommandOptions;
  /** The verbs that may follow its name (`actions.ts`). */
  readonly actions?: ReadonlyMap<string, Action>;
  /** False for one that has nothing to do with `SVC_HOME`, or only looks at how it is. */
  readonly usesHome?: false;
  run(input: CommandInput, context: CommandContext): Promise<ExitCode>;
}

export interface Action {
  /** The names of those of the command's options that it understands. */
  readonly options: readonly string[];
  /** All that may follow it, where that is known beforehand: what a shell completes. */
  readonly words?: readonly string[];
  /** @param input without its name */
  run(input: CommandInput, context: CommandContext): Promise<ExitCode>;
}

export type ExitCode = 0 | 1 | 2;

export interface CommandInput {
  readonly flags: Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
  readonly positionals: readonly string[];
}

export interface CommandContext {
  readonly terminal: Terminal;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** `SVC_HOME`. */
  readonly home: string;
  /**
   * Fires when the user or the system asks the program to end, or with the reason `READER_LEFT` when nobody reads its
   * output any more; a second time, the second signal.
   */
  readonly stop: AbortSignal;
  readonly stopNow: AbortSignal;
}

export interface Terminal {
  /** Data, to stdout: a line. */
  print(text: StyledText): void;
  /** Data, to stdout: a piece of what comes bit by bit. */
  write(text: StyledText): void;
  /** Words, to stderr. */
  say(text: StyledText): void;
  /** Writes over the line that it wrote last, and with no text takes it away; absent where stderr is no screen. */
  readonly rewrite?: ((text: string) => void) | undefined;
  /**
   * Draws on stdout, in black on white whatever the screen's colours are; absent where stdout is no screen.
   * @returns false, having drawn nothing, where a row is wider than the screen
   */
  readonly draw?: ((rows: readonly string[]) => boolean) | undefined;
  /**
   * Asks on stderr and hears the answer, empty when the user ends the program or `signal` fires; absent where nobody can
   * answer.
   */
  readonly ask?: ((question: string, signal?: AbortSignal) => Promise<string>) | undefined;
  /** Reads what a person types, with a history and more than one line; absent where nobody types and reads. */
  readonly edit?: ((options: EditorOptions) => LineEditor) | undefined;
  /** Whether a person reads the data, and not a file or a program. */
  readonly isInteractive: boolean;
  /** What is piped in, all of it; or the line that a person types, who is asked first. @throws {CommandError} */
  read(question: string): Promise<string>;
  /**
   * All that is piped in, or `undefined` where a person sits there instead.
   * @throws {CommandError} for more than `maxBytes`
   */
  readPiped(maxBytes: number): Promise<Uint8Array | undefined>;
}

/** Why `stop` fires when whoever read the output has seen enough (`| head`): no failure. */
export const READER_LEFT = 'the reader left';

/** The user's mistake: said in one line, with exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** A failure that the user can do something about: said in one line, with exit code 1. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(message: string, options: { readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
  }
}
