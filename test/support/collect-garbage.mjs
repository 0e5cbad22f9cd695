// Preloaded into the service by `--import`, with --expose-gc: collects as hard as it can while statements of the
// database come and go, and says when all have.
import Database from 'better-sqlite3';

const database = new Database(':memory:');
let left = 100_000;

function round() {
  for (let made = 0; made < 1000; made++, left--) database.prepare(`SELECT ${left}`).get();
  globalThis.gc();
  if (left > 0) setImmediate(round);
  else console.error('all statements collected');
}
round();
