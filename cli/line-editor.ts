/** What a person types at a terminal, message by message: with a history, over several lines, and pasted as it stands. */
import { createInterface, type Interface, type Key } from 'node:readline';
import type { ReadStream, WriteStream } from 'node:tty';
import { Keyboard } from './keyboard.ts';
import { collectMessageLines } from './message-lines.ts';

export interface LineEditor {
  /** @returns the next message, `undefined` once they leave (Ctrl-D) or the program is to end */
  read(): Promise<string | undefined>;
  /** Does something between two messages. @param work is given a signal that Ctrl-C fires */
  whileBusy<Result>(work: (interrupted: AbortSignal) => Promise<Result>): Promise<Result>;
  /** Leaves the terminal as it was found. */
  close(): void;
}

export interface EditorOptions {
  readonly prompt: string;
  /** In place of the prompt before a line that goes on with a message. */
  readonly continuation: string;
  /** Ctrl-C, where nothing has been typed that it could take away. */
  readonly onIdleInterrupt: () => void;
}

interface LineEditorOptions extends EditorOptions {
  readonly stdin: ReadStream;
  readonly stdout: WriteStream;
  /** Ends what is being typed. */
  readonly stop: AbortSignal;
  /** Whether the terminal understands more than text. */
  readonly hasControls: boolean;
}

const HISTORY_LINES = 1000;
/** Of a terminal that does not say how wide it is. */
const DEFAULT_COLUMNS = 80;
/** xterm's bracketed paste: its line ends send nothing. */
const MARK_PASTES = '\u001b[?2004h';
const LEAVE_PASTES = '\u001b[?2004l';

export class TerminalLineEditor implements LineEditor {
  readonly #options: LineEditorOptions;
  readonly #keyboard: Keyboard;
  readonly #reader: Interface;
  readonly #lines = collectMessageLines();
  readonly #leave = (): void => {
    this.#hasLeft = true;
    this.#deliver(undefined);
  };
  #isPasting = false;
  #hasLeft = false;
  #take: ((message: string | undefined) => void) | undefined;
  #interrupt: AbortController | undefined;

  constructor(options: LineEditorOptions) {
    const { stdin, stdout, stop, prompt, hasControls } = options;
    this.#options = options;
    this.#keyboard = new Keyboard({ stdin, onInterrupt: () => this.#interrupt?.abort() });
    if (stdout.columns === 0) stdout.columns = DEFAULT_COLUMNS;
    this.#reader = createInterface({
      input: this.#keyboard,
      output: stdout,
      terminal: true,
      prompt,
      historySize: HISTORY_LINES,
      removeHistoryDuplicates: true,
    });
    this.#listen();
    stop.addEventListener('abort', this.#leave, { once: true });
    if (hasControls) stdout.write(MARK_PASTES);
  }

  async read(): Promise<string | undefined> {
    if (this.#hasLeft || this.#options.stop.aborted) return undefined;
    const message = new Promise<string | undefined>((resolve) => (this.#take = resolve));
    this.#prompt();
    this.#keyboard.release();
    return message;
  }

  async whileBusy<Result>(work: (interrupted: AbortSignal) => Promise<Result>): Promise<Result> {
    this.#interrupt = new AbortController();
    try {
      return await work(this.#interrupt.signal);
    } finally {
      this.#interrupt = undefined;
    }
  }

  close(): void {
    const { stop, stdout, hasControls } = this.#options;
    stop.removeEventListener('abort', this.#leave);
    this.#reader.close();
    this.#keyboard.close();
    if (hasControls) stdout.write(LEAVE_PASTES);
  }

  #listen(): void {
    this.#keyboard.on('keypress', (_text, { name }: Key) => {
      if (name === 'paste-start' || name === 'paste-end') this.#isPasting = name === 'paste-start';
    });
    this.#reader.on('line', (line) => {
      const message = this.#lines.add(line, this.#isPasting);
      if (message === undefined) this.#prompt();
      else this.#deliver(message);
    });
    this.#reader.on('SIGINT', () => {
      if (this.#reader.line === '' && !this.#lines.hasBegun()) this.#options.onIdleInterrupt();
      else this.#giveUp();
      this.#prompt();
    });
    // Back from Ctrl-Z.
    this.#reader.on('SIGCONT', () => this.#prompt());
    this.#reader.on('close', this.#leave);
  }

  #prompt(): void {
    const { prompt, continuation } = this.#options;
    this.#reader.setPrompt(this.#lines.hasBegun() ? continuation : prompt);
    this.#reader.prompt(true);
  }

  /** Takes away what has been typed. */
  #giveUp(): void {
    this.#lines.clear();
    this.#reader.write(null, { ctrl: true, name: 'e' });
    this.#reader.write(null, { ctrl: true, name: 'u' });
  }

  #deliver(message: string | undefined): void {
    this.#keyboard.hold();
    this.#take?.(message);
    this.#take = undefined;
  }
}
