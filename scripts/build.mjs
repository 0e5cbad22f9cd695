// `npm run build`: install and compile, nothing else.
import { build, install } from './prepare.mjs';

install();
await build();
