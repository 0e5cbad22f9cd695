// `npm run build`: install and compile, nothing else.
import { build, install, requireNode } from './prepare.mjs';

requireNode();
install();
await build();
