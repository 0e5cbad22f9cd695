#!/usr/bin/env node
// The `postern` command. In a checkout it builds what changed first, exactly as `npm start` does.
import { build, install, requireNode } from '../scripts/prepare.mjs';

requireNode();
install();
await build();
await import('../dist/postern/bin.js');
