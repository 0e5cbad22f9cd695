/** A bounded memory: what was asked for longest ago goes first. */
export interface LruCache<Value> {
  get(name: string): Value | undefined;
  set(name: string, value: Value): void;
}

/** Keeps the newest `capacity` values; getting one makes it new. */
export function createLruCache<Value>(capacity: number): LruCache<Value> {
  const values = new Map<string, Value>();
  return {
    get(name) {
      const value = values.get(name);
      if (value === undefined) return undefined;
      values.delete(name);
      values.set(name, value);
      return value;
    },
    set(name, value) {
      values.set(name, value);
      const [oldest] = values.keys();
      if (values.size > capacity && oldest !== undefined) values.delete(oldest);
    },
  };
}
