// What `./postern` runs: installs and builds what changed, then the command itself, in this same process.
import { build, install } from './prepare.mjs';

install();
await build();
await import('../dist/postern/bin.js');
