/** A value that is made when it is first asked for. A failure is nobody's to keep: the next who asks tries again. */
export interface Remembered<Value> {
  /** @throws what making it throws, this time */
  get(): Promise<Value>;
  /** What is made or being made; undefined where nobody has asked, and where making it fails. */
  find(): Promise<Value | undefined>;
}

export function remembered<Value>(make: () => Promise<Value>): Remembered<Value> {
  let making: Promise<Value> | undefined;
  const begin = (): Promise<Value> => {
    const made = make();
    made.catch(() => {
      if (making === made) making = undefined;
    });
    return made;
  };
  return {
    get: () => (making ??= begin()),
    find: async () => making?.catch(() => undefined),
  };
}
