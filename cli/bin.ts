/** The compiled program itself, for whoever built it already; `postern.mjs` builds first. */
import { enableCompileCache } from 'node:module';
import { join } from 'node:path';

// Beside the program, where nobody but who can change the program can put anything.
enableCompileCache(join(import.meta.dirname, 'compile-cache'));
const { run } = await import('./main.ts');
await run(process.argv.slice(2));
