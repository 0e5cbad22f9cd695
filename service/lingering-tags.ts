/**
 * The relay cuts off whoever has a tag that it may not let in any more, at once. A device that is told no, since that
 * closes its invite, has still to be told so: what lets devices in to be paired stays for that long.
 */
import type { SetTimer } from '../core/timer.ts';
import type { AllowedTag } from '../relay-client/allow-list.ts';

/** For an answer to go out, also over a slow network. */
const LINGER_MS = 10_000;

interface LingeringOptions {
  /** Those that are good now. */
  readonly tags: () => readonly AllowedTag[];
  readonly setTimer: SetTimer;
  /** Called when one that lingered is gone. */
  readonly onGone: () => void;
}

export class LingeringTags {
  readonly #options: LingeringOptions;
  /** Of the last look. */
  #good = new Map<string, AllowedTag>();
  readonly #lingering = new Map<string, { readonly tag: AllowedTag; readonly cancel: () => void }>();

  constructor(options: LingeringOptions) {
    this.#options = options;
  }

  /** What is good, and what was so a moment ago and is for pairing. */
  list(): readonly AllowedTag[] {
    const good = new Map(this.#options.tags().map((tag) => [Buffer.from(tag.tag).toString('hex'), tag]));
    for (const [key, tag] of this.#good) if (!good.has(key) && tag.tagClass === 'pairing') this.#linger(key, tag);
    this.#good = good;
    return [...good.values(), ...[...this.#lingering.values()].map(({ tag }) => tag)];
  }

  close(): void {
    for (const { cancel } of this.#lingering.values()) cancel();
    this.#lingering.clear();
  }

  #linger(key: string, tag: AllowedTag): void {
    const cancel = this.#options.setTimer(LINGER_MS, () => {
      this.#lingering.delete(key);
      this.#options.onGone();
    });
    this.#lingering.set(key, { tag, cancel });
  }
}
