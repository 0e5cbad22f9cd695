// `npm run build`: install and compile, nothing else.
import { install } from './install.mjs';
import { build } from './prepare.mjs';

install('development');
await build();
