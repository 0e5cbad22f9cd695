/** `GET /pair/challenge`: the first thing that a device asks which is to be paired by a code. */
import { HINT } from '../../../channel/hint.ts';
import { ServiceError } from '../../../core/errors.ts';
import { NO_BODY_BYTES } from '../../bounds.ts';
import { RequestError } from '../../errors.ts';
import type { Route, Services } from '../../route.ts';
import { HintError } from '../../sealed/hint-error.ts';
import { transportOfCode } from './secure.ts';

export const pairChallenge: Route<Pick<Services, 'channelServer'>> = {
  method: 'GET',
  path: '/pair/challenge',
  access: 'channel',
  maxBodyBytes: NO_BODY_BYTES,
  clientPrefix: '',
  summary: 'A challenge to pair with, and who this gateway says that it is; good for two minutes and one device.',
  async handle(request, { channelServer }) {
    try {
      const body = await channelServer.challenge({ transport: transportOfCode(request), clientKey: request.clientKey });
      return { headers: { 'cache-control': 'no-store' }, body };
    } catch (error) {
      throw error instanceof HintError ? refusalOf(error) : error;
    }
  },
};

/** Nobody reads a hint in an answer that is JSON. */
function refusalOf({ hint }: HintError): Error {
  return hint === HINT.notOffered
    ? new RequestError(
        'not_found',
        'Pairing by code is not available from here. Ask the owner of the gateway for an invite.',
      )
    : new ServiceError('shutting_down', 'The service is stopping.');
}
