/** The channel server of paired devices. */
import { describeError } from '../core/describe-error.ts';
import { findDiskFault } from '../storage/disk-fault.ts';
import { findTarget, routeBodyBytes } from '../gateway/find-target.ts';
import { lazyChannelServer } from '../gateway/sealed/lazy-channel-server.ts';
import type { ChannelServerOptions, ChannelServer } from '../gateway/sealed/channel-server.ts';
import type { ChannelCrypto } from './channel-crypto.ts';
import type { IdentityService } from './identity-service.ts';
import type { ChannelSettings } from '../gateway/sealed/settings.ts';
import type { PairingSettings } from '../gateway/settings.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

interface ChannelServerParts extends Pick<
  ChannelServerOptions,
  'database' | 'now' | 'approvals' | 'gatewayFacts' | 'run'
> {
  readonly identity: Pick<IdentityService, 'openPairings'>;
  readonly storage: Storage['storage'];
  readonly channelCrypto: ChannelCrypto;
}

export function openChannelServer(
  { settings, clock, say, onClose }: Start<ChannelSettings & PairingSettings>,
  parts: ChannelServerParts,
): ChannelServer {
  const { identity, storage, channelCrypto, ...rest } = parts;
  const channelServer = lazyChannelServer(async () => {
    const [{ createChannelServer }, { gatewayCrypto }] = await Promise.all([
      import('../gateway/sealed/channel-server.ts'),
      import('../channel/node/crypto.ts'),
    ]);
    return createChannelServer({
      ...clock,
      ...rest,
      openPairings: () => identity.openPairings(),
      crypto: () => channelCrypto.get(() => gatewayCrypto(settings['channel.crypto'])),
      codePairing: {
        isOffered: settings['pairing.discovery'],
        agentIndex: settings['pairing.defaultAgent'] ?? undefined,
      },
      maxBodyBytes: (method, path) => routeBodyBytes(method, path),
      accessOf: (method, path) => findTarget(method, path)?.route.access,
      tickMs: settings['channel.streamTickMs'],
      onError(error) {
        storage.note(error);
        if (findDiskFault(error) === undefined) say(`a sealed call failed: ${JSON.stringify(describeError(error))}`);
      },
    });
  });
  onClose(() => channelServer.close());
  return channelServer;
}
