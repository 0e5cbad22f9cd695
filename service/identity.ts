/** The identity, as a part of the service. */
import { openOrCreateIdentity } from '../identity/node/open-identity.ts';
import { identityOptions } from './identity-options.ts';
import { createIdentityService, type IdentityService } from './identity-service.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

/** Not opened yet: that begins when the service listens, or with the first caller who needs it. */
export function openIdentity({ home, environment, say, onClose }: Start, storage: Storage): IdentityService {
  const identity = createIdentityService({
    ...storage,
    openIdentity: async () => openOrCreateIdentity(await identityOptions({ home, environment })),
    say,
    elapsed: () => performance.now(),
  });
  onClose(() => identity.close());
  return identity;
}
