/** `/admin/devices`: the paired devices, for the owner at this machine. */
import { NO_BODY_BYTES } from '../../bounds.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Route } from '../../route.ts';
import { revocationReply } from './keys.ts';
import { encodeDevice, renameDeviceSchema } from '../../wire/admin/pairings.ts';

const common = {
  path: '/admin/devices/:id',
  access: 'admin',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
} as const;

export const listDevices: Route = {
  ...common,
  method: 'GET',
  path: '/admin/devices',
  summary: 'The paired devices, newest first, the revoked among them.',
  async handle(_request, { keys }) {
    const { devices } = await keys.openPairings();
    return { body: { devices: devices.list().map(encodeDevice) } };
  },
};

export const renameDevice: Route = {
  ...common,
  method: 'POST',
  summary: 'Call a device something else.',
  body: renameDeviceSchema,
  async handle({ params, json }, { keys }) {
    const { name } = parseBody(renameDeviceSchema, json());
    const { devices } = await keys.openPairings();
    const id = params['id'] ?? '';
    devices.rename(id, name);
    const device = devices.find(id);
    if (device === undefined) throw unknownDevice();
    return { body: encodeDevice(device) };
  },
};

export const revokeDevice: Route = {
  ...common,
  method: 'DELETE',
  summary:
    'Revoke a device, with its access keys. When this is answered, nothing goes on under them; `cut` is what had to be cut off.',
  async handle({ params }, { keys, storage }) {
    const { devices } = await keys.openPairings();
    const id = params['id'] ?? '';
    const { result, cut, isDurable } = await devices.revoke(id);
    if (result === 'unknown') throw unknownDevice();
    const told = { id, revoked: true, already: result === 'already', cut };
    return revocationReply({ told, isDurable, storage });
  },
};

function unknownDevice(): RequestError {
  return new RequestError('not_found', 'There is no device with this id.');
}
