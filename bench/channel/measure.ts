/** Timing two things against each other on a machine that has other work to do. */

export interface Ratio {
  /** Microseconds for one turn, in the fastest batch. */
  readonly oursUs: number;
  readonly bareUs: number;
  /** bare ÷ ours, of the fastest batches: 1 means that ours costs nothing more. */
  readonly ratio: number;
}

const BATCHES = 60;
const BATCH_MS = 10;

/** Interleaved batches of both, after as many turns as a batch has to warm up. The fastest has the fewest disturbances. */
export function compare(ours: () => void, bare: () => void): Ratio {
  const [oursTurns, bareTurns] = [turnsPerBatch(ours), turnsPerBatch(bare)];
  let [oursUs, bareUs] = [Infinity, Infinity];
  for (let batch = 0; batch < BATCHES; batch++) {
    oursUs = Math.min(oursUs, timePerTurnUs(ours, oursTurns));
    bareUs = Math.min(bareUs, timePerTurnUs(bare, bareTurns));
  }
  return { oursUs, bareUs, ratio: bareUs / oursUs };
}

function turnsPerBatch(run: () => void): number {
  timePerTurnUs(run, 20);
  return Math.max(1, Math.round((BATCH_MS * 1000) / timePerTurnUs(run, 20)));
}

function timePerTurnUs(run: () => void, turns: number): number {
  const start = process.hrtime.bigint();
  for (let turn = 0; turn < turns; turn++) run();
  return Number(process.hrtime.bigint() - start) / 1000 / turns;
}
