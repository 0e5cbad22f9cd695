/** `/admin/devices`: the paired devices, for the owner at this machine. */
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';
import { revocationReply } from './keys.ts';
import { encodeDevice, renameDeviceSchema } from '../../wire/admin/pairings.ts';

export const listDevices = adminRoute({
  method: 'GET',
  path: '/admin/devices',
  summary: 'The paired devices, newest first, the revoked among them.',
  async handle(_request, { keys }: Pick<Services, 'keys'>) {
    const { devices } = await keys.openPairings();
    return { body: { devices: devices.list().map(encodeDevice) } };
  },
});

export const renameDevice = adminRoute({
  method: 'POST',
  path: '/admin/devices/:id',
  summary: 'Call a device something else.',
  body: renameDeviceSchema,
  async handle({ params, json }, { keys }: Pick<Services, 'keys'>) {
    const { name } = parseBody(renameDeviceSchema, json());
    const { devices } = await keys.openPairings();
    const id = params['id'] ?? '';
    devices.rename(id, name);
    const device = devices.find(id);
    if (device === undefined) throw unknownDevice();
    return { body: encodeDevice(device) };
  },
});

export const revokeDevice = adminRoute({
  method: 'DELETE',
  path: '/admin/devices/:id',
  summary:
    'Revoke a device, with its access keys. When this is answered, nothing goes on under them; `cut` is what had to be cut off.',
  async handle({ params }, { keys, storage }: Pick<Services, 'keys' | 'storage'>) {
    const { devices } = await keys.openPairings();
    const id = params['id'] ?? '';
    const { result, cut, isDurable } = await devices.revoke(id);
    if (result === 'unknown') throw unknownDevice();
    const told = { id, revoked: true, already: result === 'already', cut };
    return revocationReply({ told, isDurable, storage });
  },
});

function unknownDevice(): RequestError {
  return new RequestError('not_found', 'There is no device with this id.');
}
