/** `/admin/keys`: makes, lists and revokes access keys, for the owner at this machine. */
import { reasonOf } from '../../../storage/disk-fault.ts';
import { RequestError } from '../../errors.ts';
import { parseBody } from '../../json-body.ts';
import type { Reply, Services } from '../../route.ts';
import { adminRoute } from '../route-classes.ts';
import { createKeySchema, encodeKey, accessKeyParamsOf } from '../../wire/admin/access-keys.ts';

export const listKeys = adminRoute({
  method: 'GET',
  path: '/admin/keys',
  summary: 'The access keys, newest first, those that count no more among them. Not the keys themselves.',
  async handle(_request, { keys, now }: Pick<Services, 'keys' | 'now'>) {
    const registry = await keys.open();
    return { body: { keys: registry.list().map((key) => encodeKey(key, now())) } };
  },
});

export const createKey = adminRoute({
  method: 'POST',
  path: '/admin/keys',
  summary:
    'Make an access key: for one agent or for all, with a label, for so many seconds (null: for good; else 90 days). The answer is the only place where it is ever shown.',
  body: createKeySchema,
  async handle({ json }, { keys, now }: Pick<Services, 'keys' | 'now'>) {
    const params = accessKeyParamsOf(parseBody(createKeySchema, json()));
    const { token, key } = (await keys.open()).create(params);
    return { status: 201, headers: { 'cache-control': 'no-store' }, body: { token, ...encodeKey(key, now()) } };
  },
});

interface RevocationAnswer {
  readonly told: object;
  readonly isDurable: boolean;
  readonly storage: Services['storage'];
}

/** RFC 9110 §15.3.3: 202 is accepted, and not yet complete. Then it says why, as `/health` does. */
export function revocationReply({ told, isDurable, storage }: RevocationAnswer): Reply {
  if (isDurable) return { status: 200, body: { ...told, durable: true } };
  const trouble = storage.trouble();
  return { status: 202, body: { ...told, durable: false, ...(trouble && { reason: reasonOf(trouble.fault) }) } };
}

export const revokeKey = adminRoute({
  method: 'DELETE',
  path: '/admin/keys/:id',
  summary:
    'Revoke an access key. When this is answered, nothing goes on under it; `cut` is what had to be cut off. 202, `durable` is false and `reason` says why, where the disk has not taken it: the key is refused, and would count again if the service ended before it does.',
  async handle({ params }, { keys, storage }: Pick<Services, 'keys' | 'storage'>) {
    const id = params['id'] ?? '';
    const { result, cut, isDurable } = await (await keys.open()).revoke(id);
    if (result === 'unknown') throw new RequestError('not_found', 'There is no access key with this id.');
    const told = { id, revoked: true, already: result === 'already', cut };
    return revocationReply({ told, isDurable, storage });
  },
});

export const revokeAllKeys = adminRoute({
  method: 'DELETE',
  path: '/admin/keys',
  summary:
    'Revoke every access key. When this is answered, nothing goes on under any of them; `cut` is what had to be cut off.',
  async handle(_request, { keys, storage }: Pick<Services, 'keys' | 'storage'>) {
    const { isDurable, ...told } = await (await keys.open()).revokeAll();
    return revocationReply({ told, isDurable, storage });
  },
});
