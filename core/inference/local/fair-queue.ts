/**
 * Who is next: owners take turns, and each owner's own calls keep the order of their arrival. So one that sends fifty
 * calls at once delays another's single call by one call, not by fifty. Guests take turns after all others.
 */
import type { CallOwner } from '../call-owner.ts';

export interface FairQueue<Call> {
  readonly size: number;
  add(owner: CallOwner, call: Call): void;
  /** A call that starts, or that nobody waits for any more. The next turn is another owner's. */
  remove(call: Call): void;
  /** The calls in the order in which they would be served from now on. */
  inTurn(): readonly Call[];
  /**
   * Which call has to go so that there is room for one more of this owner's: the last of whoever has most waiting, a
   * guest's before anybody else's. Only calls that `matches` are counted.
   * @returns undefined where nobody has more waiting than the owner would have
   */
  findExcess(owner: CallOwner, matches: (call: Call) => boolean): Call | undefined;
}

interface Turns<Call> {
  readonly owner: CallOwner;
  readonly calls: readonly Call[];
}

export function createFairQueue<Call>(): FairQueue<Call> {
  /** Whose turn it is stands first. */
  const byOwner = new Map<string, Turns<Call>>();

  return {
    get size() {
      return [...byOwner.values()].reduce((sum, { calls }) => sum + calls.length, 0);
    },
    add(owner, call) {
      const calls = byOwner.get(owner.name)?.calls ?? [];
      byOwner.set(owner.name, { owner, calls: [...calls, call] });
    },
    remove(call) {
      const turns = [...byOwner.values()].find(({ calls }) => calls.includes(call));
      if (turns === undefined) return;
      const { owner } = turns;
      const calls = turns.calls.filter((other) => other !== call);
      byOwner.delete(owner.name);
      if (calls.length > 0) byOwner.set(owner.name, { owner, calls });
    },
    inTurn() {
      // As it mostly is, and each call asks several times.
      if (byOwner.size === 0) return [];
      const all = [...byOwner.values()];
      return [
        ...rounds(all.filter(({ owner }) => !owner.isGuest)),
        ...rounds(all.filter(({ owner }) => owner.isGuest)),
      ];
    },
    findExcess(owner, matches) {
      const shares = [...byOwner.values()].map((turns) => ({ ...turns, calls: turns.calls.filter(matches) }));
      const waiting = shares.filter(({ calls }) => calls.length > 0);
      const most = (isGuest: boolean) => largest(waiting.filter((turns) => turns.owner.isGuest === isGuest));
      const guest = owner.isGuest ? undefined : most(true);
      if (guest !== undefined) return guest.at(-1);
      const own = waiting.find((turns) => turns.owner.name === owner.name)?.calls.length ?? 0;
      const rival = most(owner.isGuest) ?? [];
      return rival.length > own + 1 ? rival.at(-1) : undefined;
    },
  };
}

/** Each owner's first call, then each one's second, and so on. */
function rounds<Call>(all: readonly Turns<Call>[]): readonly Call[] {
  const count = Math.max(0, ...all.map(({ calls }) => calls.length));
  return Array.from({ length: count }, (_, round) => all.flatMap(({ calls }) => calls.slice(round, round + 1))).flat();
}

function largest<Call>(shares: readonly Turns<Call>[]): readonly Call[] | undefined {
  return shares.map(({ calls }) => calls).toSorted((one, other) => other.length - one.length)[0];
}
