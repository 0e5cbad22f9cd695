/** The door of paired devices. */
import { describeError } from '../core/describe-error.ts';
import { findDiskFault } from '../core/storage/disk-fault.ts';
import { findTarget, routeBodyBytes } from '../gateway/find-target.ts';
import { lateDoor } from '../gateway/sealed/late-door.ts';
import type { DoorOptions, SealedDoor } from '../gateway/sealed/sealed-door.ts';
import type { ChannelCrypto } from './channel-crypto.ts';
import type { IdentityService } from './identity-service.ts';
import type { Start } from './start.ts';
import type { Storage } from './storage.ts';

interface DoorParts extends Pick<DoorOptions, 'database' | 'now' | 'approvals' | 'gatewayFacts' | 'run'> {
  readonly identity: Pick<IdentityService, 'openPairings'>;
  readonly storage: Storage['storage'];
  readonly channelCrypto: ChannelCrypto;
}

export function openDoor({ settings, clock, say, onClose }: Start, parts: DoorParts): SealedDoor {
  const { identity, storage, channelCrypto, ...rest } = parts;
  const door = lateDoor(async () => {
    const [{ createSealedDoor }, { gatewayCrypto }] = await Promise.all([
      import('../gateway/sealed/sealed-door.ts'),
      import('../channel/node/crypto.ts'),
    ]);
    return createSealedDoor({
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
  onClose(() => door.close());
  return door;
}
