/** Where the service is reached: its sockets, and how devices in the network hear of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { setProcessTimer } from '../core/timer.ts';
import { createListener, type Listener } from '../gateway/listener.ts';
import type { Gateway } from '../gateway/server.ts';
import type { PairingSettings, ServerSettings } from '../gateway/settings.ts';
import type { Services } from '../gateway/route.ts';
import { addressOf, listenHosts } from './addresses.ts';
import { maxConnections } from './open-files.ts';
import type { IdentityService } from './identity-service.ts';
import { reasonOf } from './internal-error.ts';
import { StartError, type Start } from './start.ts';

/** For the streams' last events to reach their readers; one that does not read is not waited for. */
const CLOSE_GRACE_MS = 1000;

/** Listens to nobody yet. */
export function openListener({ onClose }: Start): Listener {
  const listener = createListener({ setTimer: setProcessTimer, maxConnections: maxConnections() });
  onClose(async () => {
    await Promise.race([listener.close(), sleep(CLOSE_GRACE_MS, undefined, { ref: false })]);
    listener.cut();
    await listener.close();
  });
  return listener;
}

/** @throws {StartError} where the port is not to be had */
export async function listen({ settings }: Start<ServerSettings>, listener: Listener, gateway: Gateway): Promise<void> {
  const port = settings['server.port'];
  try {
    await listener.listen({ hosts: listenHosts(settings['server.expose']), port, ...gateway });
  } catch (error) {
    throw listenError(error, port);
  }
}

function listenError(error: unknown, port: number): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'EADDRINUSE')
    return new StartError(`port ${port} is in use at ${addressOf(error)}. Choose another one: --port N, or SVC_PORT.`);
  if (code === 'EACCES')
    return new StartError(`port ${port} may not be used by this user. Choose one above 1023: --port N.`);
  return error;
}

interface Advertising {
  readonly identity: Pick<IdentityService, 'opened'>;
  readonly facts: Services['gatewayFacts'];
  readonly listener: Pick<Listener, 'place'>;
}

/** Only where somebody could come who hears of it. */
export async function advertise(
  { settings, say, stopping, onClose }: Start<ServerSettings & PairingSettings>,
  { identity, facts, listener }: Advertising,
): Promise<void> {
  if (!settings['server.expose'] || !settings['pairing.discovery'] || !settings['pairing.advertise']) return;
  const mdns = await import('./mdns.ts');
  const { port, hosts } = listener.place();
  const what = identity.opened.then(({ pairings }) => {
    const { gatewayName: name, gatewayId } = facts(pairings.gatewayKey());
    return { name, port, gatewayId, hasIPv6: hosts.includes('::') };
  });
  const unheard = (error: unknown): void =>
    say(`Devices in the network cannot find this service by themselves (mDNS)${reasonOf(error)}.`);
  const advertisement = mdns.advertise(what, unheard);
  let ended: Promise<void> | undefined;
  const end = (): Promise<void> => (ended ??= advertisement.stop());
  stopping.addEventListener('abort', () => void end().catch(() => undefined), { once: true });
  onClose(end);
}
