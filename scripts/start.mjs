// `npm start [-- arguments of serve]`: install and build what changed, then serve, in this same process so that
// signals and the exit code need no forwarding.
import { install } from './install.mjs';
import { build } from './prepare.mjs';

process.env.POSTERN_COMMAND ??= './postern';
install('serving');
await build();
const { run } = await import('../dist/postern/main.js');
await run(['serve', ...process.argv.slice(2)]);
