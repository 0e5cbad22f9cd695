/**
 * Anthropic messages, the content blocks of a stream: numbered, and one strictly after the other, since that is how
 * Anthropic's clients put a message together. The port may have several blocks open at a time; then the first of them
 * goes out as it grows, and the others wait for their turn.
 */
import { encodeNamedEvent } from '../event-stream.ts';

interface BlockStart {
  /** What the port calls it, while it is open. */
  readonly key: string;
  /** The empty block that it begins as. */
  readonly start: object;
  /** A delta that goes before its end. */
  readonly last?: object;
}

interface Block extends BlockStart {
  readonly waiting: object[];
  /** A block in which nothing is ever written does not appear at all. */
  isWritten: boolean;
  isEnded: boolean;
}

/** Methods give the events that go out now, as text; often none. */
export class BlockSequence {
  /** Blocks that are not over on the wire, the first of which has its turn. */
  readonly #blocks: Block[] = [];
  #index = 0;
  #isFirstOpen = false;

  /** Nothing goes out before there is something in the block. */
  begin(start: BlockStart): '' {
    this.#blocks.push({ ...start, waiting: [], isWritten: false, isEnded: false });
    return '';
  }

  /** @param deltas none only announces the block */
  write(key: string, ...deltas: readonly object[]): string {
    const block = this.#growing(key);
    if (block === undefined) return '';
    block.isWritten = true;
    block.waiting.push(...deltas);
    return this.#advance();
  }

  end(key: string): string {
    const block = this.#growing(key);
    if (block === undefined) return '';
    block.isEnded = true;
    return this.#advance();
  }

  /** Ends what the answer broke off in. */
  endAll(): string {
    for (const block of this.#blocks) block.isEnded = true;
    return this.#advance();
  }

  /** The port may use an id again once its block has ended. */
  #growing(key: string): Block | undefined {
    return this.#blocks.find((block) => block.key === key && !block.isEnded);
  }

  #advance(): string {
    let events = '';
    for (let first = this.#blocks[0]; first !== undefined; first = this.#blocks[0]) {
      events += this.#flush(first);
      if (!first.isEnded) break;
      events += this.#stop(first);
      this.#blocks.shift();
    }
    return events;
  }

  #flush(block: Block): string {
    if (!block.isWritten) return '';
    const start = this.#isFirstOpen ? '' : this.#event('content_block_start', { content_block: block.start });
    this.#isFirstOpen = true;
    return (
      start +
      block.waiting
        .splice(0)
        .map((delta) => this.#delta(delta))
        .join('')
    );
  }

  #stop(block: Block): string {
    if (!this.#isFirstOpen) return '';
    const events = (block.last === undefined ? '' : this.#delta(block.last)) + this.#event('content_block_stop', {});
    this.#isFirstOpen = false;
    this.#index += 1;
    return events;
  }

  #delta(delta: object): string {
    return this.#event('content_block_delta', { delta });
  }

  #event(type: string, fields: object): string {
    return encodeNamedEvent(type, { type, index: this.#index, ...fields });
  }
}
