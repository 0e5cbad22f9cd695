/** Every check of `postern doctor`, in the order in which they are shown. */
import type { Check } from './check.ts';
import { homePermissions } from './home-permissions.ts';
import { port } from './port.ts';
import { user } from './user.ts';
import { webPages } from './web-pages.ts';

export const checks: readonly Check[] = [homePermissions, user, port, webPages];
