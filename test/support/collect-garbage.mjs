// Preloaded into the service by `--import`, with --expose-gc: collects as hard as it can while statements of the
// database come and go, and says when all have gone.
import Database from 'better-sqlite3';

const STATEMENTS = 100_000;

const database = new Database(':memory:');
let [made, collected] = [0, 0];
const registry = new FinalizationRegistry(() => collected++);

function round() {
  for (const end = Math.min(made + 1000, STATEMENTS); made < end; made++) {
    // Each is a text of its own, but its column has the name of all: for rows of a shape of their own the engine keeps
    // that shape, and a collection took ten times as long for looking at tens of thousands of them.
    const statement = database.prepare(`SELECT ${made} AS value`);
    statement.get();
    registry.register(statement);
  }
  globalThis.gc();
  if (collected < STATEMENTS) setImmediate(round);
  else console.error('all statements collected');
}
round();
