/** How lines become a message: one line each, unless more is wanted. Pure. */

const FENCE = '"""';

export interface MessageLines {
  /**
   * @param isPasted it came in the middle of a paste, so that more follows
   * @returns the message that ends with this line, or `undefined` where more is to come
   */
  add(line: string, isPasted?: boolean): string | undefined;
  /** Whether a message has begun. */
  hasBegun(): boolean;
  /** Forgets what has begun. */
  clear(): void;
}

/** A message of several lines stands between two `"""`, or each line but the last ends with a backslash. */
export function collectMessageLines(): MessageLines {
  let lines: string[] = [];
  let isFenced = false;
  const clear = (): void => {
    lines = [];
    isFenced = false;
  };
  const end = (last: string): string => {
    const message = [...lines, last].join('\n');
    clear();
    return message;
  };
  const more = (line: string): undefined => {
    lines.push(line);
    return undefined;
  };
  const inFence = (line: string): string | undefined =>
    line.trimEnd().endsWith(FENCE) ? end(line.trimEnd().slice(0, -FENCE.length)).trim() : more(line);
  return {
    add(line, isPasted = false) {
      if (!isFenced && lines.length === 0 && line.trimStart().startsWith(FENCE)) {
        isFenced = true;
        return inFence(line.trimStart().slice(FENCE.length));
      }
      if (isFenced) return inFence(line);
      if (isPasted) return more(line);
      return line.endsWith('\\') ? more(line.slice(0, -1)) : end(line);
    },
    hasBegun: () => lines.length > 0 || isFenced,
    clear,
  };
}
