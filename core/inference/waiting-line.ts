/**
 * Who is next: callers take turns, and each caller's own calls keep the order of their arrival. So one that sends
 * fifty calls at once delays another's single call by one call, not by fifty.
 */
export interface WaitingLine<Call> {
  readonly size: number;
  add(client: string, call: Call): void;
  /** A call that starts, or that nobody waits for any more. The next turn is another client's. */
  remove(call: Call): void;
  /** The calls in the order in which they would be served from now on. */
  inTurn(): readonly Call[];
}

export function createWaitingLine<Call>(): WaitingLine<Call> {
  /** Whose turn it is stands first. */
  const byClient = new Map<string, Call[]>();

  function ownerOf(call: Call): readonly [string, Call[]] | undefined {
    return [...byClient].find(([, calls]) => calls.includes(call));
  }

  return {
    get size() {
      return [...byClient.values()].reduce((sum, calls) => sum + calls.length, 0);
    },
    add(client, call) {
      const calls = byClient.get(client);
      if (calls === undefined) byClient.set(client, [call]);
      else calls.push(call);
    },
    remove(call) {
      const owner = ownerOf(call);
      if (owner === undefined) return;
      const [client, calls] = owner;
      const others = calls.filter((other) => other !== call);
      byClient.delete(client);
      if (others.length > 0) byClient.set(client, others);
    },
    inTurn() {
      const clients = [...byClient.values()];
      const rounds = Math.max(0, ...clients.map((calls) => calls.length));
      return Array.from({ length: rounds }, (_, round) =>
        clients.flatMap((calls) => calls.slice(round, round + 1)),
      ).flat();
    },
  };
}
