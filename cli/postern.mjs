#!/usr/bin/env node
// The `postern` command. In a checkout it builds what changed first, exactly as `npm start` does.
import { build, install, requireNode } from '../scripts/prepare.mjs';

requireNode();
install();
build();
const { run } = await import('../dist/cli/main.js');
await run(process.argv.slice(2));
