/**
 * The keys of a terminal, handed on while somebody wants them and held while not. So what is typed during an answer
 * is neither lost nor written into it, and Ctrl-C is heard at any time.
 */
import { Readable } from 'node:stream';
import type { ReadStream } from 'node:tty';

const CTRL_C = 0x03;
/** What is typed ahead; more is dropped. */
const MAX_HELD_CHARACTERS = 64 * 1024;

interface KeyboardOptions {
  readonly stdin: ReadStream;
  /** Ctrl-C, while keys are held; what was held before is dropped. */
  readonly onInterrupt: () => void;
}

/** Reads `stdin` in raw mode from the moment that a reader of lines asks for that. */
export class Keyboard extends Readable {
  readonly isTTY = true;
  readonly #stdin: ReadStream;
  readonly #onInterrupt: () => void;
  readonly #take = (data: Buffer): void => this.#feed(data);
  readonly #end = (): void => void this.push(null);
  #isHeld = true;
  #held = '';

  constructor({ stdin, onInterrupt }: KeyboardOptions) {
    super();
    this.#stdin = stdin;
    this.#onInterrupt = onInterrupt;
    stdin.on('data', this.#take);
    stdin.on('end', this.#end);
  }

  get isRaw(): boolean {
    return this.#stdin.isRaw;
  }

  setRawMode(mode: boolean): this {
    this.#stdin.setRawMode(mode);
    return this;
  }

  override _read(): void {
    // Keys come when they come.
  }

  /** From now on keys are kept. */
  hold(): void {
    this.#isHeld = true;
  }

  /** From now on keys are handed on, those first that were held. */
  release(): void {
    this.#isHeld = false;
    const held = this.#held;
    this.#held = '';
    this.#handOn(held);
  }

  /** Leaves the terminal as it was found. */
  close(): void {
    this.#stdin.off('data', this.#take);
    this.#stdin.off('end', this.#end);
    this.#stdin.pause();
    this.destroy();
  }

  #feed(data: Buffer): void {
    if (!this.#isHeld) this.#handOn(data.toString('latin1'));
    else if (data.includes(CTRL_C)) {
      this.#held = data.subarray(data.lastIndexOf(CTRL_C) + 1).toString('latin1');
      this.#onInterrupt();
    } else this.#held = (this.#held + data.toString('latin1')).slice(0, MAX_HELD_CHARACTERS);
  }

  /** Line by line: the end of one may be the beginning of an answer. */
  #handOn(keys: string): void {
    const lines = keys.split(/(?<=[\r\n])/);
    for (const [at, line] of lines.entries()) {
      if (this.#isHeld) {
        this.#held += lines.slice(at).join('');
        return;
      }
      // Readline listens to the event; `push` would hand it on later, when nobody may want it any more.
      if (line !== '') this.emit('data', Buffer.from(line, 'latin1'));
    }
  }
}
