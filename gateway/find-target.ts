/** The row of the route table that an address belongs to, for whoever asks without sending a request. */
import { NO_BODY_BYTES } from './bounds.ts';
import { createRouter, type Router, type Target } from './pipeline/router.ts';
import { routes } from './routes.ts';

/** Made for whoever asks first: most programs don't. */
let router: Router | undefined;

/** `undefined` where there is none. */
export function findTarget(method: string, path: string): Target | undefined {
  router ??= createRouter(routes);
  try {
    const target = router.find(method, path);
    return target?.wants === 'answer' ? target : undefined;
  } catch {
    // An address that can't be read leads nowhere.
    return undefined;
  }
}

/** The largest body that the route takes which is asked for; of one that does not exist, as much as it takes to say so. */
export function routeBodyBytes(method: string, path: string): number {
  return findTarget(method, path)?.route.maxBodyBytes ?? NO_BODY_BYTES;
}
