/** The compiled program itself, for whoever built it already; `postern.mjs` builds first. */
import { run } from './main.ts';

await run(process.argv.slice(2));
