/** The client of `postern connect`. Where home says that it is found elsewhere, another one takes its place. */
import { connect, type PairedDevice, type PosternClient } from '../clients/sdk/index.ts';
import { relaysOf } from '../clients/sdk/relay.ts';
import type { CommandContext } from './command.ts';
import { version } from '../service/package.ts';
import { keepMovedDevice, loadPairedDevice, type PairedGateway } from './paired-gateways.ts';
import { relaySocket } from './relay-socket.ts';

/** @throws {CommandError}, {IdentityError} where this machine does not have its keys */
export async function openHomeClient(gateway: PairedGateway, context: CommandContext): Promise<PosternClient> {
  const webSocket = relaySocket(context.environment);
  const open = (device: PairedDevice): PosternClient =>
    connect(device, {
      clientVersion: `postern/${version}`,
      transports: relaysOf(device, { webSocket }),
      onEndpointsChanged: (moved) => void follow(moved),
    });
  // What runs in an earlier one goes on there.
  let client = open(await loadPairedDevice(gateway, context));
  const clients = [client];
  async function follow(moved: PairedDevice): Promise<void> {
    client = open(moved);
    clients.push(client);
    context.terminal.say('Home is found elsewhere by now, and this machine has taken note of it.');
    await keepMovedDevice(moved, context).catch(() => {
      context.terminal.say('That could not be stored: it is asked again the next time.');
    });
  }
  return {
    fetch: (input, init) => client.fetch(input, init),
    get path() {
      return client.path;
    },
    close: () => clients.forEach((one) => one.close()),
  };
}
