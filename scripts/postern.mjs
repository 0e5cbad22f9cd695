// What `./postern` runs: installs and builds what changed, then the command itself, in this same process.
import { install } from './install.mjs';
import { build } from './prepare.mjs';

install('serving');
await build();
await import('../dist/postern/bin.js');
