/** The ways to the relays, loaded where there are any. */
import { setProcessTimer } from '../core/timer.ts';
import type { IdentityService } from './identity-service.ts';
import type { RelayTunnels } from './relay-tunnels.ts';
import type { RelaySettings } from './relay-settings.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

const NO_RELAYS: RelayTunnels = {
  list: () => [],
  begin: () => undefined,
  changed: () => undefined,
  close: () => Promise.resolve(),
};

export async function openRelays(
  { settings, environment, say, onClose }: Start<RelaySettings>,
  { identity, database, now }: Pick<Storage, 'database' | 'now'> & { readonly identity: IdentityService },
): Promise<RelayTunnels> {
  if (settings['relay.urls'].length === 0) return NO_RELAYS;
  const { createRelayTunnels } = await import('./relay-tunnels.ts');
  const relays = createRelayTunnels({
    origins: settings['relay.urls'],
    opened: identity.opened,
    database,
    environment,
    say,
    now,
    setTimer: setProcessTimer,
    random: Math.random,
  });
  onClose(() => relays.close());
  return relays;
}
